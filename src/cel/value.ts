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
 * arithmetic on both is a double (`a.n + 1`), division of two ints is an int (`response.code / 100`).
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

/** Keys of a map; an unsigned key is kept as the int of the same value. */
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

/** What `type(x)` gives. */
export class CelType {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/**
 * A map whose values are computed when asked for. Never has a property of its JavaScript object as
 * a field.
 */
export abstract class CelView {
  /** The value of a field; undefined when there is none; an error when it cannot be had. */
  abstract field(name: string): CelResult | undefined
  abstract fieldNames(): readonly string[]

  /** Is the field there? The default asks for its value. */
  hasField(name: string): boolean {
    return this.field(name) !== undefined
  }

  /** A method of its own, before functions of the same name; undefined when it has none. */
  method(_name: string, _args: readonly CelValue[]): CelResult | undefined {
    return undefined
  }
}

/** Every value that has a type of its own says so with this. */
interface Typed {
  readonly celType: string
}

/** Name of the type of a value, as `type(x)` has it. */
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

/** An object of a JSON text or of a supplier: nothing but data. */
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

/** An int of CEL, or the overflow. */
export function toInt(value: bigint): CelResult {
  return value >= minInt && value <= maxInt ? value : intOverflow
}

/** A uint of CEL, or the overflow. */
export function toUint(value: bigint): CelResult {
  return value >= 0n && value <= maxUint ? new CelUint(value) : uintOverflow
}

/** The key of a map for a value; undefined for what is no key. */
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

/** Value of a key; undefined when it is not there. */
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

export function mapSize(map: CelMapValue): number {
  return map instanceof Map ? map.size : mapKeys(map).length
}

/** How deep values may nest where all of them must be walked. */
export const maxValueDepth = 200

export const tooDeep = new CelError('limit', `the value nests deeper than ${maxValueDepth} levels`)
