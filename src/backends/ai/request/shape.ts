/**
 * Shapes of JSON that a client sends. What is read of a request has to have the shape that its format
 * says; otherwise it would be taken for absent. Fields that are not listed may be anything.
 */
import { isObject, type JsonObject } from '../json.ts'
import { LlmError } from '../llm-error.ts'

export interface Shape {
  /** As errors name it: "text", "an array". */
  readonly what: string
  fits(value: unknown): boolean
  /** Looks at what is inside a value that fits. @throws LlmError 400 */
  check?(value: unknown, path: string): void
}

/** @throws LlmError 400 that names the path. */
export function checkShape(shape: Shape, value: unknown, path: string): void {
  if (!shape.fits(value)) throw new LlmError(400, `${path} must be ${shape.what}`)
  shape.check?.(value, path)
}

export const text: Shape = { what: 'text', fits: (value) => typeof value === 'string' }
export const boolean: Shape = {
  what: 'true or false',
  fits: (value) => typeof value === 'boolean',
}
export const number: Shape = {
  what: 'a number',
  fits: (value) => typeof value === 'number' || JSON.isRawJSON(value),
}
export const anyObject: Shape = { what: 'an object', fits: isObject }

export function list(item: Shape): Shape {
  return {
    what: 'an array',
    fits: Array.isArray,
    check(value, path) {
      const items: readonly unknown[] = Array.isArray(value) ? value : []
      for (const [at, one] of items.entries()) checkShape(item, one, `${path}[${at}]`)
    },
  }
}

/** The first shape that fits counts. */
export function either(...shapes: readonly Shape[]): Shape {
  return {
    what: shapes.map(({ what }) => what).join(' or '),
    fits: (value) => shapes.some((shape) => shape.fits(value)),
    check(value, path) {
      shapes.find((shape) => shape.fits(value))?.check?.(value, path)
    },
  }
}

interface ObjectRules {
  /** Fields that have to be there. */
  readonly required?: readonly string[]
  /** The field that says which others have to be there, and those by its values. */
  readonly by?: { readonly field: string; readonly required: Readonly<Record<string, string>> }
}

/** Names of the fields that a value of this kind has to have. */
function neededBy(value: JsonObject, { required = [], by }: ObjectRules): readonly string[] {
  const kind = by === undefined ? undefined : value[by.field]
  if (by === undefined || typeof kind !== 'string' || !Object.hasOwn(by.required, kind)) {
    return required
  }
  return [...required, ...(by.required[kind] ?? '').split(' ')]
}

/** Null stands for a field that is absent, as in the interfaces of vendors. */
export function object(fields: Readonly<Record<string, Shape>>, rules: ObjectRules = {}): Shape {
  return {
    what: anyObject.what,
    fits: anyObject.fits,
    check(value, path) {
      if (!isObject(value)) return
      const needed = neededBy(value, rules)
      for (const [name, shape] of Object.entries(fields)) {
        const found = Object.hasOwn(value, name) ? value[name] : undefined
        // What is needed and absent fits no shape.
        if (found == null && !needed.includes(name)) continue
        checkShape(shape, found, path === '' ? name : `${path}.${name}`)
      }
    },
  }
}
