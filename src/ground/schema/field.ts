/**
 * The field language. A schema is plain data (a Node) that carries a TypeScript type. Validation,
 * CRDs, editor schemas and reference pages are made from the same nodes, so that they cannot
 * disagree.
 *
 *   const keepalive = object('Keepalive', {
 *     retries: optional(integer({ min: 1, max: 64 }), { doc: 'Probes …', default: 9 }),
 *   })
 *   type Keepalive = Infer<typeof keepalive>
 */

import type { SecretContent } from '../secrets/placeholder.ts'
import { amountPattern, quantityPattern } from './quantity.ts'

/** A rule over a whole value, beyond the bounds of its parts. */
export interface Rule {
  /** Shown by both offline validation and the API server; tests match on it. */
  readonly message: string
  /** The rule in CEL over `self`, for CRDs; omitted for kinds of other projects. */
  readonly cel?: string
  /** Returns true if a value obeys the rule. Unless `presence` is set, all parts of the value are valid. */
  readonly holds: (value: never) => boolean
  /** What to write instead of one value. Offline validation adds it to the message. */
  readonly example?: (value: never) => string | undefined
  /** The rule looks only at which fields are present, so it is checked even if parts are invalid. */
  readonly presence?: true
  /** The field of the value that the problem is about, such as `max`. */
  readonly at?: string
  /** Set if the rule limits how many of a group of fields may be set. */
  readonly group?: FieldGroup
}

/** How many of a group of fields may be set. */
export interface FieldGroup {
  readonly count: 'exactly one' | 'at least one' | 'at most one'
  readonly fields: readonly string[]
}

interface NodeBase {
  /** Name of the type in the reference pages. */
  readonly name?: string
  readonly rules?: readonly Rule[]
  /**
   * The value refers to an object of this kind: by its name, or by the field `name` or `matchLabels` if the
   * value is an object. Not needed if the value itself has fields for group and kind.
   */
  readonly refersTo?: string
}

export interface TextNode extends NodeBase {
  readonly type: 'text'
  /** Minimum length in Unicode code points, as the API server counts. */
  readonly min?: number
  readonly max?: number
  /** A pattern that is valid in both RE2 and JavaScript. */
  readonly pattern?: string
  /** The pattern in words: completes "must be …". */
  readonly expects?: string
  readonly values?: readonly string[]
  /** Meaning of each value, for the reference pages. */
  readonly meanings?: Readonly<Record<string, string>>
}

export interface IntegerNode extends NodeBase {
  readonly type: 'integer'
  readonly min?: number
  readonly max?: number
  readonly values?: readonly number[]
  /** A number of bytes, which may be written as a quantity; the checked value is a number. */
  readonly bytes?: true
}

interface BooleanNode extends NodeBase {
  readonly type: 'boolean'
}

export interface ListNode extends NodeBase {
  readonly type: 'list'
  readonly items: Node
  readonly min?: number
  readonly max?: number
  /** No two items may agree in all of these fields or, for `value`, be equal. */
  readonly unique?: { readonly by: readonly string[] } | 'value'
}

export interface MapNode extends NodeBase {
  readonly type: 'map'
  readonly values: Node
  readonly keys?: TextNode
  readonly max?: number
  /** If set, the API server rejects an entry that is null; otherwise it drops the entry silently. */
  readonly refusesNull?: true
}

export interface ObjectNode extends NodeBase {
  readonly type: 'object'
  readonly fields: Readonly<Record<string, AnyProperty>>
  /** Set for Kubernetes kinds: unknown fields are kept, and null counts as omitted. */
  readonly open?: boolean
  /**
   * Definitions of kinds do not describe the fields, to remain small enough for `kubectl apply`: the API server accepts
   * any object, and the status reports what is wrong in it.
   */
  readonly isBrief?: boolean
  /** Advice for fields that do not exist but are often written. */
  readonly advice?: Readonly<Record<string, string>>
}

/** Any JSON value, kept as it is, including nulls. */
export interface JsonNode extends NodeBase {
  readonly type: 'json'
  /** The value must be an object. */
  readonly objectOnly?: boolean
}

/** An integer or a string, such as a port or a quantity. */
export interface IntOrStringNode extends NodeBase {
  readonly type: 'intOrString'
  /** Pattern of strings, as in a TextNode. */
  readonly pattern?: string
  readonly expects?: string
}

export type Node =
  | TextNode
  | IntegerNode
  | BooleanNode
  | ListNode
  | MapNode
  | ObjectNode
  | JsonNode
  | IntOrStringNode

declare const typeOf: unique symbol

/** A node with the TypeScript type of the values that it accepts. */
export interface Schema<T> {
  readonly node: Node
  readonly [typeOf]?: T
}

/** The type of the values that a schema accepts. */
export type Infer<S> = S extends { readonly [typeOf]?: infer T } ? Exclude<T, undefined> : never

/** How far this version supports a field. `schema`: it is accepted, but not used yet. */
export type Support = 'works' | 'pending' | 'schema'

/** The documentation and behaviour of a field. */
export interface FieldInfo {
  /** One or two sentences: what it does, its unit, and its effect if it is not set. */
  readonly doc: string
  /** Default that is applied at run time; the API server never writes it into the object. */
  readonly default?: unknown
  /** Default that is written into the object, as the upstream CRD does. */
  readonly fill?: unknown
  readonly unit?: string
  /** The field holds secrets, which the log does not have. */
  readonly secret?: SecretContent
  /** The field is part of a protection: if it cannot be enforced, traffic is refused. */
  readonly security?: boolean
  /** Also applies to the fields below this one. Default: `works`. */
  readonly support?: Support
}

export interface Property<T, Required extends boolean> extends FieldInfo {
  readonly schema: Schema<T>
  readonly required: Required
}

export type AnyProperty = Property<unknown, boolean>

type Simplify<T> = { readonly [K in keyof T]: T[K] }

/** The object type that a table of properties describes. */
export type ObjectOfProperties<P extends Record<string, AnyProperty>> = Simplify<
  {
    [K in keyof P as P[K] extends { required: true } ? K : never]: Infer<P[K]['schema']>
  } & {
    [K in keyof P as P[K] extends { required: true } ? never : K]?: Infer<P[K]['schema']>
  }
>

const infoOf = (info: string | FieldInfo): FieldInfo =>
  typeof info === 'string' ? { doc: info } : info

/** A field that must be present. */
export function required<T>(schema: Schema<T>, info: string | FieldInfo): Property<T, true> {
  return { ...infoOf(info), schema, required: true }
}

/** A field that may be omitted. */
export function optional<T>(schema: Schema<T>, info: string | FieldInfo): Property<T, false> {
  return { ...infoOf(info), schema, required: false }
}

/** An object with exactly these fields. */
export function object<P extends Record<string, AnyProperty>>(
  name: string,
  fields: P,
  options: Pick<ObjectNode, 'rules' | 'open' | 'isBrief' | 'advice' | 'refersTo'> = {},
): Schema<ObjectOfProperties<P>> {
  return { node: { type: 'object', name, fields, ...options } }
}

/** A string with bounds; without options, any string is valid. */
export function text(options: Omit<TextNode, 'type' | 'values' | 'meanings'> = {}): Schema<string> {
  return { node: { type: 'text', ...options } }
}

/** One of a fixed set of strings; `meanings` explains each of them. */
export function choice<const M extends Record<string, string>>(
  name: string,
  meanings: M,
): Schema<Extract<keyof M, string>> {
  return { node: { type: 'text', name, values: Object.keys(meanings), meanings } }
}

/** The largest int32, which is the default maximum. */
const largestInteger = 2 ** 31 - 1

export function integer(
  options: Omit<IntegerNode, 'type' | 'values' | 'bytes'> = {},
): Schema<number> {
  return { node: { type: 'integer', max: largestInteger, ...options } }
}

/** A number of bytes, written as an integer or as a quantity such as `2Mi`. */
export function byteSize(options: Pick<IntegerNode, 'min' | 'max'> = {}): Schema<number> {
  return { node: { type: 'integer', max: largestInteger, ...options, bytes: true } }
}

/** One of a fixed set of numbers, such as redirect codes. */
export function integerChoice<const V extends readonly number[]>(...values: V): Schema<V[number]> {
  return { node: { type: 'integer', values } }
}

export function boolean(): Schema<boolean> {
  return { node: { type: 'boolean' } }
}

export function list<T>(
  items: Schema<T>,
  options: Omit<ListNode, 'type' | 'items'> = {},
): Schema<readonly T[]> {
  return { node: { type: 'list', items: items.node, ...options } }
}

/** An object with any keys. */
export function map<T>(
  values: Schema<T>,
  options: {
    keys?: Schema<string>
    max?: number
    rules?: readonly Rule[]
    refusesNull?: true
  } = {},
): Schema<Readonly<Record<string, T>>> {
  const { keys, ...rest } = options
  const keyNode = keys?.node.type === 'text' ? { keys: keys.node } : {}
  return { node: { type: 'map', values: values.node, ...keyNode, ...rest } }
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export function json(): Schema<Json> {
  return { node: { type: 'json' } }
}

export function jsonObject(): Schema<{ readonly [key: string]: Json }> {
  return { node: { type: 'json', objectOnly: true } }
}

export function intOrString(
  bounds: Pick<IntOrStringNode, 'pattern' | 'expects'> = {},
): Schema<number | string> {
  return { node: { type: 'intOrString', ...bounds } }
}

/** A Kubernetes quantity (apimachinery, resource.Quantity): `500m`, `1Gi`, 2. */
export function quantity(): Schema<number | string> {
  return intOrString({ pattern: quantityPattern, expects: 'a quantity such as 500m or 1Gi' })
}

/** A quantity without a minus sign: Kubernetes rejects negative resources of containers. */
export function amount(): Schema<number | string> {
  const expects = 'a quantity such as 500m or 1Gi that is not negative'
  return intOrString({ pattern: amountPattern, expects })
}

/** Adds rules to a schema. */
export function withRules<T>(schema: Schema<T>, ...rules: readonly Rule[]): Schema<T> {
  return { node: { ...schema.node, rules: [...(schema.node.rules ?? []), ...rules] } }
}
