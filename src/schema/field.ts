/**
 * The field language. A schema is plain data (a Node) that carries a TypeScript type; validation,
 * CRDs, editor schemas and reference pages are all read off the same nodes, so that they cannot
 * disagree.
 *
 *   const keepalive = object('Keepalive', {
 *     retries: optional(integer({ min: 1, max: 64 }), { doc: 'Probes …', default: 9 }),
 *   })
 *   type Keepalive = Infer<typeof keepalive>
 */

import { amountPattern, quantityPattern } from './quantity.ts'

/** A rule over a whole value, beyond the bounds of its parts. */
export interface Rule {
  /** Shown by offline validation and by the API server alike; tests match on it. */
  readonly message: string
  /** CEL over `self` for the CRD; absent for kinds whose CRDs are not ours. */
  readonly cel?: string
  /** Does the value obey? Sees only values whose parts are valid, unless `presence` is set. */
  readonly holds: (value: never) => boolean
  /** Looks only at which fields are present, so it is judged even where parts are invalid. */
  readonly presence?: true
  /** Field below the value that the problem is about, such as `max`. */
  readonly at?: string
  /** The group that the rule is about, where it is about one. */
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
}

export interface TextNode extends NodeBase {
  readonly type: 'text'
  /** Length in Unicode code points, as the API server counts. */
  readonly min?: number
  readonly max?: number
  /** Valid in RE2 and in JavaScript alike. */
  readonly pattern?: string
  /** What the pattern asks for, in words: completes "must be …". */
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
  /** A number of bytes, which may be written as a quantity; the checked value is the number. */
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
  /** No two items may agree in these fields (`map`), or be equal (`set`). */
  readonly unique?: { readonly by: readonly string[] } | 'value'
}

export interface MapNode extends NodeBase {
  readonly type: 'map'
  readonly values: Node
  readonly keys?: TextNode
  readonly max?: number
  /** The API server refuses an entry that is null; else it drops it without a word. */
  readonly refusesNull?: true
}

export interface ObjectNode extends NodeBase {
  readonly type: 'object'
  readonly fields: Readonly<Record<string, AnyProperty>>
  /** Unknown fields are kept, and null means absent: for kinds that Kubernetes owns. */
  readonly open?: boolean
  /** Advice for a field that is not there but that people write. */
  readonly advice?: Readonly<Record<string, string>>
}

/** Any JSON value, kept as it is, nulls included. */
export interface JsonNode extends NodeBase {
  readonly type: 'json'
  /** Only an object will do. */
  readonly objectOnly?: boolean
}

/** An integer or a string, such as a port or a quantity. */
export interface IntOrStringNode extends NodeBase {
  readonly type: 'intOrString'
  /** Of strings; as that of a text. */
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

/** A node together with the TypeScript type of the values it accepts. */
export interface Schema<T> {
  readonly node: Node
  readonly [typeOf]?: T
}

/** The type of the values that a schema accepts. */
export type Infer<S> = S extends { readonly [typeOf]?: infer T } ? Exclude<T, undefined> : never

/** Does a field do what it says in this version? `schema` = accepted, read by nothing yet. */
export type Support = 'works' | 'pending' | 'schema'

/** What a reader must know about a field. */
export interface FieldInfo {
  /** One or two sentences: what it does, unit, effect where unset. */
  readonly doc: string
  /** Applied at run time where the field is absent; never written by the API server. */
  readonly default?: unknown
  /** Written into the object where the field is absent, as the upstream CRD does. */
  readonly fill?: unknown
  readonly unit?: string
  /** Holds a secret; redacted from the log. */
  readonly secret?: true
  /** Protects something: where it does not work, traffic is refused. */
  readonly security?: boolean
  /** Inherited by the fields below; `works` where nothing says otherwise. */
  readonly support?: Support
}

export interface Property<T, Required extends boolean> extends FieldInfo {
  readonly schema: Schema<T>
  readonly required: Required
}

export type AnyProperty = Property<unknown, boolean>

type Simplify<T> = { readonly [K in keyof T]: T[K] }

/** The object type that a table of properties describes. */
export type ObjectOf<P extends Record<string, AnyProperty>> = Simplify<
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

/** A field that may be absent. */
export function optional<T>(schema: Schema<T>, info: string | FieldInfo): Property<T, false> {
  return { ...infoOf(info), schema, required: false }
}

/** An object with exactly these fields. */
export function object<P extends Record<string, AnyProperty>>(
  name: string,
  fields: P,
  options: Pick<ObjectNode, 'rules' | 'open' | 'advice'> = {},
): Schema<ObjectOf<P>> {
  return { node: { type: 'object', name, fields, ...options } }
}

/** A string with bounds; without options, any string. */
export function text(options: Omit<TextNode, 'type' | 'values' | 'meanings'> = {}): Schema<string> {
  return { node: { type: 'text', ...options } }
}

/** One of a fixed set of strings; the value of each entry says what it means. */
export function choice<const M extends Record<string, string>>(
  name: string,
  meanings: M,
): Schema<Extract<keyof M, string>> {
  return { node: { type: 'text', name, values: Object.keys(meanings), meanings } }
}

/** As large as an int32 of Kubernetes, unless a bound is given. */
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

/** An object with free keys. */
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

/** Any JSON value. */
export function json(): Schema<Json> {
  return { node: { type: 'json' } }
}

/** Any JSON object. */
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

/** A quantity without a minus sign: Kubernetes refuses containers with less than nothing. */
export function amount(): Schema<number | string> {
  const expects = 'a quantity such as 500m or 1Gi that is not negative'
  return intOrString({ pattern: amountPattern, expects })
}

/** The same schema with more rules. */
export function withRules<T>(schema: Schema<T>, ...rules: readonly Rule[]): Schema<T> {
  return { node: { ...schema.node, rules: [...(schema.node.rules ?? []), ...rules] } }
}
