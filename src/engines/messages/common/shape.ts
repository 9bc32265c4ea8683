/**
 * Shapes of JSON from clients. Fields that the gateway reads must have the shape that the format
 * requires, because readers treat other values as absent. Other fields may be anything.
 */
import { isObject, type JsonObject } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'

export interface Shape {
  /** Description of the shape in errors, such as "an array". */
  readonly what: string
  fits(value: unknown): boolean
  /** Checks the content of a value that fits. @throws LlmError 400 */
  check?(value: unknown, path: string): void
}

/** @throws LlmError 400 with the path if the value does not fit. */
export function checkShape(shape: Shape, value: unknown, path: string): void {
  if (!shape.fits(value)) throw new LlmError(400, `${path} must be ${shape.what}`)
  shape.check?.(value, path)
}

export const text: Shape = { what: 'text', fits: (value) => typeof value === 'string' }
export const boolean: Shape = { what: 'true or false', fits: (value) => typeof value === 'boolean' }
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

/** A value of one of several shapes; the first one that fits checks the content. */
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
  /** Names of required fields, separated by spaces. */
  readonly required?: string
  /** Names of fields that are required if a field has a certain value, by that field and value. */
  readonly by?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Returns the names of the fields that a value must have. */
function requiredOf(value: JsonObject, { required = '', by = {} }: ObjectRules): readonly string[] {
  const more = Object.entries(by).map(([name, requiredBy]) => {
    const kind = value[name]
    return typeof kind === 'string' && Object.hasOwn(requiredBy, kind) ? requiredBy[kind] : ''
  })
  return [required, ...more].join(' ').split(' ')
}

/** The shape of an object. A field that is null counts as absent, as in the APIs of vendors. */
export function object(fields: Readonly<Record<string, Shape>>, rules: ObjectRules = {}): Shape {
  return {
    what: anyObject.what,
    fits: anyObject.fits,
    check(value, path) {
      if (!isObject(value)) return
      const needed = requiredOf(value, rules)
      for (const [name, shape] of Object.entries(fields)) {
        const found = Object.hasOwn(value, name) ? value[name] : undefined
        // A required field that is absent is checked too, because undefined fits no shape.
        if (found == null && !needed.includes(name)) continue
        checkShape(shape, found, path === '' ? name : `${path}.${name}`)
      }
    },
  }
}

// --- shapes that several client formats share ---

export const schema = anyObject
export const generateContentFields = { cachedContent: text, labels: anyObject }
export const sampling = { temperature: number, top_p: number, top_k: number }
