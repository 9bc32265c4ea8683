/**
 * Checks of plain data that another process has compiled: the form that a reader relies on, told
 * once beside its type. Unlike a schema it is for machines: no text to read, no defaults.
 *
 *   interface Retry { readonly codes: readonly number[]; readonly backoffMs?: number }
 *   const retry: Shape<Retry> = record({ codes: list(integer(100, 599)), backoffMs: optional(count) })
 *   problemOf(retry, JSON.parse(text))
 */
import { isObject } from './json-object.ts'

declare const typeOf: unique symbol

export interface Shape<T> {
  /** What is wrong with a value, with its path in front; undefined if it has the shape. */
  readonly check: (value: unknown, path: string) => string | undefined
  readonly isOptional?: true
  readonly [typeOf]?: T
}

/** What is wrong with a value, such as `providers[0].keys: expected a list`. */
export function problemOf(shape: Shape<unknown>, value: unknown): string | undefined {
  return shape.check(value, '')
}

const expected = (path: string, what: string): string =>
  path === '' ? `expected ${what}` : `${path}: expected ${what}`

/** What a shape of one type says of every other value. */
const whenever = <T>(what: string, is: (value: unknown) => boolean): Shape<T> => ({
  check: (value, path) => (is(value) ? undefined : expected(path, what)),
})

export const text: Shape<string> = whenever('a string', (value) => typeof value === 'string')
export const flag: Shape<boolean> = whenever('a boolean', (value) => typeof value === 'boolean')
export const anything: Shape<unknown> = whenever('a value', (value) => value !== undefined)

export function integer(min: number, max: number): Shape<number> {
  const is = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max
  return whenever(`an integer from ${min} to ${max}`, is)
}

export const count = integer(0, Number.MAX_SAFE_INTEGER)
export const port = integer(1, 65_535)

/** One of some constants. */
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

/** An object with any names. */
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

/** An object with these fields and no others: an unknown one may restrict what the others allow. */
export function record<T extends object>(
  fields: {
    readonly [K in keyof T]-?: Shape<T[K]>
  },
): Shape<T> {
  const known = Object.entries<Shape<unknown>>(fields)
  return {
    check(value, path) {
      if (!isObject(value)) return expected(path, 'an object')
      const unknown = Object.keys(value).find((name) => !Object.hasOwn(fields, name))
      if (unknown !== undefined) return `${below(path, unknown)}: unknown field`
      return firstOf(known, ([name, shape]) => {
        const field = Object.hasOwn(value, name) ? value[name] : undefined
        if (field === undefined && shape.isOptional === true) return undefined
        return shape.check(field, below(path, name))
      })
    },
  }
}

/** A value of the first shape, or of the second one. */
export function either<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return {
    check: (value, path) =>
      second.check(value, path) === undefined ? undefined : first.check(value, path),
  }
}

/** Objects that a field of constants tells apart. */
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

/** A shape whose values have to hold together as well. */
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
