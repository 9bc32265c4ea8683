/**
 * The values of CEL in JavaScript.
 *
 *   int        bigint         | list       Array
 *   uint       CelUint        | map        Map (of a map literal), plain object (own properties only)
 *   double     number         |            or CelView (fields computed when asked for)
 *   string     string         | duration   CelDuration
 *   bytes      Uint8Array     | timestamp  CelTimestamp
 *   bool, null as they are    | type       CelType; ip, cidr: CelIp, CelCidr
 *
 * Suppliers of variables give integers as bigint: a JavaScript number is a double, and so is every
 * number of a JSON text. Arithmetic and comparison take int and double together; the result of
 * arithmetic on both is a double (`a.n + 1`), division of two ints is an int (`response.code /
 * 100`).
 */
import { CelError } from './error.ts'
import type { CelCidr, CelIp } from './ip.ts'
import type { CelDuration, CelTimestamp } from './time.ts'

export type CelValue =
  | bigint
  | CelUint
  | number
  | string
  | Uint8Array
  | boolean
  | null
  | readonly CelValue[]
  | CelMapValue
  | CelDuration
  | CelTimestamp
  | CelType
  | CelIp
  | CelCidr

export type CelMapValue = ReadonlyMap<CelKey, CelValue> | CelRecord | CelView

/** A key of a map. A uint key is stored as the int of the same value. */
export type CelKey = string | bigint | boolean

export interface CelRecord {
  readonly [name: string]: CelValue | undefined
}

export type CelResult = CelValue | CelError

/** An unsigned 64-bit integer. */
export class CelUint {
  readonly value: bigint

  constructor(value: bigint) {
    this.value = value
  }
}

/** The result of `type(x)`. */
export class CelType {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** A map whose values are computed on demand. Properties of the JavaScript object are never fields. */
export abstract class CelView {
  /** Returns the value of a field, undefined if there is none, or an error if it cannot be read. */
  abstract field(name: string): CelResult | undefined
  abstract fieldNames(): readonly string[]

  /** Returns true if the field exists. By default this reads its value. */
  hasField(name: string): boolean {
    return this.field(name) !== undefined
  }

  /** Calls a method of the view, which overrides the function of that name; undefined if there is none. */
  method(_name: string, _args: readonly CelValue[]): CelResult | undefined {
    return undefined
  }
}

/** Values of other types have a property with the name of their type. */
interface Typed {
  readonly celType: string
}

/** Returns the name of a value's type, as in `type(x)`. */
export function typeName(value: CelResult | undefined): string {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'number':
      return 'double'
    case 'bigint':
      return 'int'
    case 'boolean':
      return 'bool'
    case 'object':
      return typeNameOfObject(value)
    default:
      return 'unknown'
  }
}

function typeNameOfObject(value: object | null): string {
  if (value === null) return 'null_type'
  if (Array.isArray(value)) return 'list'
  if (value instanceof CelUint) return 'uint'
  if (value instanceof CelType) return 'type'
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof CelError) return 'error'
  if (isMap(value)) return 'map'
  return (value as Partial<Typed>).celType ?? 'unknown'
}

export function isList(value: CelResult): value is readonly CelValue[] {
  return Array.isArray(value)
}

/** Returns true for a plain object, which comes from JSON or from a supplier. */
export function isRecord(value: unknown): value is CelRecord {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

export function isMap(value: unknown): value is CelMapValue {
  return value instanceof CelView || value instanceof Map || isRecord(value)
}

const minInt = -(2n ** 63n)
const maxInt = 2n ** 63n - 1n
const maxUint = 2n ** 64n - 1n
const intOverflow = new CelError('overflow', 'the integer is outside 64 bits')
const uintOverflow = new CelError('overflow', 'the unsigned integer is outside 64 bits')

/** Returns an int of CEL, or the overflow error. */
export function toInt(value: bigint): CelResult {
  return value >= minInt && value <= maxInt ? value : intOverflow
}

/** Returns a uint of CEL, or the overflow error. */
export function toUint(value: bigint): CelResult {
  return value >= 0n && value <= maxUint ? new CelUint(value) : uintOverflow
}

/** Converts a value to a map key; undefined if it cannot be one. */
export function toKey(value: CelValue): CelKey | undefined {
  switch (typeof value) {
    case 'string':
    case 'bigint':
    case 'boolean':
      return value
    case 'number':
      return Number.isInteger(value) ? BigInt(value) : undefined
    default:
      return value instanceof CelUint ? value.value : undefined
  }
}

/** Returns the value of a key; undefined if the map does not have the key. */
export function mapGet(map: CelMapValue, key: CelKey): CelResult | undefined {
  if (map instanceof CelView) return typeof key === 'string' ? map.field(key) : undefined
  if (map instanceof Map) return map.get(key)
  const record = map as CelRecord
  return typeof key === 'string' && Object.hasOwn(record, key) ? record[key] : undefined
}

export function mapKeys(map: CelMapValue): readonly CelKey[] {
  if (map instanceof CelView) return map.fieldNames()
  if (map instanceof Map) return [...map.keys()]
  return Object.keys(map).filter((key) => (map as CelRecord)[key] !== undefined)
}

/** A map of an expression. An int and a uint of the same value are the same key, but macros see which it was. */
export class CelMap extends Map<CelKey, CelValue> {
  /** The keys that are uints. */
  readonly uints = new Set<CelKey>()

  /** Sets the value of a key that was written as `from`. */
  put(from: CelValue, key: CelKey, value: CelValue): void {
    this.set(key, value)
    if (from instanceof CelUint) this.uints.add(key)
  }

  /** Returns a key as the value that a macro gets. */
  keyValue(key: CelKey): CelValue {
    return this.uints.has(key) ? new CelUint(key as bigint) : key
  }
}

export function mapSize(map: CelMapValue): number {
  return map instanceof Map ? map.size : mapKeys(map).length
}

/** Maximum nesting of values in operations that visit all of their parts. */
export const maxValueDepth = 200

export const tooDeep = new CelError('limit', `the value nests deeper than ${maxValueDepth} levels`)
