/**
 * Checks plain data that another process has compiled, and derives the types of that data. Unlike a
 * schema a shape is for machines: it has no documentation and no defaults.
 *
 *   const retry = record({ codes: list(integer(100, 599)), backoffMs: optional(count) })
 *   type Retry = Infer<typeof retry>
 *   problemOf(retry, JSON.parse(text))
 */
import { isObject } from './json-object.ts'
import { nearest } from './suggest.ts'

declare const typeOf: unique symbol

export interface Shape<T> {
  /** Returns what is wrong with a value, after its path; undefined if the value has the shape. */
  readonly check: (value: unknown, path: string) => string | undefined
  readonly isOptional?: true
  readonly [typeOf]?: T
}

/** The type of the values that a shape describes. */
export type Infer<S> = S extends Shape<infer T> ? T : never

/** Returns what is wrong with a value, such as `providers[0].keys: expected a list`, or undefined. */
export function problemOf(shape: Shape<unknown>, value: unknown): string | undefined {
  return shape.check(value, '')
}

const expected = (path: string, what: string): string =>
  path === '' ? `expected ${what}` : `${path}: expected ${what}`

/** A shape of the values that pass a test; `what` describes them in messages. */
const whenever = <T>(what: string, is: (value: unknown) => boolean): Shape<T> => ({
  check: (value, path) => (is(value) ? undefined : expected(path, what)),
})

export const text: Shape<string> = whenever('a string', (value) => typeof value === 'string')
export const flag: Shape<boolean> = whenever('a boolean', (value) => typeof value === 'boolean')
export const anything: Shape<unknown> = whenever('a value', (value) => value !== undefined)

export const amount: Shape<number> = whenever(
  'a number that is not negative',
  (value) => Number.isFinite(value) && Number(value) >= 0,
)

export function integer(min: number, max: number): Shape<number> {
  const is = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max
  return whenever(`an integer from ${min} to ${max}`, is)
}

export const count = integer(0, Number.MAX_SAFE_INTEGER)
export const port = integer(1, 65_535)

/** One of several constants. */
export function choice<const T extends string | boolean>(...values: readonly T[]): Shape<T> {
  return whenever(`one of ${values.join(', ')}`, (value) => values.includes(value as T))
}

export function list<T>(items: Shape<T>): Shape<readonly T[]> {
  return {
    check: (value, path) =>
      Array.isArray(value)
        ? firstOf(value, (item, at) => items.check(item, `${path}[${at}]`))
        : expected(path, 'a list'),
  }
}

/** An object with any keys. */
export function map<T>(values: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return {
    check: (value, path) =>
      isObject(value)
        ? firstOf(Object.entries(value), ([name, member]) =>
            values.check(member, below(path, name)),
          )
        : expected(path, 'an object'),
  }
}

/** A field that may be absent. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return { check: shape.check, isOptional: true }
}

type IsOptional<T> = unknown extends T ? false : undefined extends T ? true : false

/** The object type of a record. Fields that may be undefined are optional. */
type RecordOf<T> = {
  readonly [K in keyof T as IsOptional<T[K]> extends true ? never : K]: T[K]
} & {
  readonly [K in keyof T as IsOptional<T[K]> extends true ? K : never]?: T[K]
}

/** An object with these fields only. Unknown fields are refused: one may restrict what the others allow. */
export function record<T extends object>(
  fields: {
    readonly [K in keyof T]-?: Shape<T[K]>
  },
): Shape<RecordOf<T>> {
  const known = Object.entries<Shape<unknown>>(fields)
  return {
    check(value, path) {
      if (!isObject(value)) return expected(path, 'an object')
      const unknown = Object.keys(value).find((name) => !Object.hasOwn(fields, name))
      if (unknown !== undefined) {
        const meant = nearest(unknown, Object.keys(fields))
        const hint = meant === undefined ? '' : `; did you mean ${meant}?`
        return `${below(path, unknown)}: unknown field${hint}`
      }
      return firstOf(known, ([name, shape]) => {
        const field = Object.hasOwn(value, name) ? value[name] : undefined
        if (field === undefined && shape.isOptional === true) return undefined
        return shape.check(field, below(path, name))
      })
    },
  }
}

/** A value of either shape. If it has neither, the problem of the first shape is returned. */
export function either<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return {
    check: (value, path) =>
      second.check(value, path) === undefined ? undefined : first.check(value, path),
  }
}

/** One of several object shapes, selected by the constant in the field `tag`. */
export function union<Tag extends string, T extends Readonly<Record<Tag, string>>>(
  tag: Tag,
  shapes: { readonly [K in T[Tag]]: Shape<Extract<T, Readonly<Record<Tag, K>>>> },
): Shape<T> {
  const byName = new Map<unknown, Shape<unknown>>(Object.entries<Shape<unknown>>(shapes))
  return {
    check(value, path) {
      if (!isObject(value)) return expected(path, 'an object')
      const shape = byName.get(value[tag])
      if (shape === undefined) {
        return expected(below(path, tag), `one of ${[...byName.keys()].join(', ')}`)
      }
      return shape.check(value, path)
    },
  }
}

/** Adds a condition on the whole value to a shape; `what` describes it in messages. */
export function where<T>(shape: Shape<T>, what: string, holds: (value: T) => boolean): Shape<T> {
  return {
    check: (value, path) =>
      shape.check(value, path) ?? (holds(value as T) ? undefined : expected(path, what)),
  }
}

const below = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

function firstOf<Item>(
  items: readonly Item[],
  problem: (item: Item, at: number) => string | undefined,
): string | undefined {
  for (const [at, item] of items.entries()) {
    const found = problem(item, at)
    if (found !== undefined) return found
  }
  return undefined
}
