/**
 * Converts a JSON Schema to the subset that vendor D accepts: inlines references, flattens `allOf`,
 * replaces lists of types by `nullable` or `anyOf`, and drops unknown keywords. A schema that would become
 * much larger is sent as it is, because the vendor also reads JSON Schema.
 */
import { field, isObject, type JsonObject, listAt, stringAt } from '../../json/json.ts'

const keptKeywords = new Set([
  'type',
  'description',
  'title',
  'nullable',
  'enum',
  'items',
  'properties',
  'required',
  'anyOf',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'propertyOrdering',
  'format',
])

const keptFormats = new Set(['enum', 'date-time'])

function without(schema: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== name))
}

/** Replaces `type: [a, "null"]` by `nullable`, and several types by `anyOf`. */
function singleType(schema: JsonObject): JsonObject {
  const types = field(schema, 'type')
  if (!Array.isArray(types)) return schema
  const rest = without(schema, 'type')
  const real = types.filter((type) => type !== 'null')
  const nullable = real.length < types.length ? { nullable: true } : {}
  if (real.length === 1) return { ...rest, type: real[0], ...nullable }
  return { ...rest, anyOf: real.map((type) => ({ type })), ...nullable }
}

/** Adds omitted types, which the vendor requires, if they follow from other keywords. */
function typed(schema: JsonObject): JsonObject {
  const { oneOf, const: only, ...rest } = schema
  if (oneOf !== undefined && rest.anyOf === undefined) return typed({ ...rest, anyOf: oneOf })
  if (rest.type !== undefined || rest.anyOf !== undefined) return schema
  if (rest.properties !== undefined) return { ...rest, type: 'object' }
  if (rest.items !== undefined) return { ...rest, type: 'array' }
  const values = only === undefined ? listAt(rest, 'enum') : [only]
  const areTexts = values.length > 0 && values.every((one) => typeof one === 'string')
  return areTexts ? { ...rest, type: 'string', enum: values } : schema
}

/** Maximum depth of a schema in the subset. Deeper schemas are cut off. */
const maxDepth = 32

/** A schema with references may grow to this multiple of its size, and by this many characters. */
const maxGrowth = 4
const maxAddedCharacters = 16 * 1024

/** Writes one schema in the subset of vendor D. */
class SchemaInliner {
  readonly #root: JsonObject
  /** The targets of the references that are being inlined. */
  readonly #open = new Set<JsonObject>()
  /** Characters that may still be written; undefined until there is a reference. */
  #left: number | undefined

  constructor(root: JsonObject) {
    this.#root = root
  }

  /** Returns undefined if the inlined schema would be too large. */
  inline(): JsonObject | undefined {
    const cleaned = this.#clean(this.#root, 0)
    return this.#isTooLarge ? undefined : cleaned
  }

  get #isTooLarge(): boolean {
    return this.#left !== undefined && this.#left < 0
  }

  #charge(characters: number): void {
    if (this.#left !== undefined) this.#left -= characters
  }

  #clean(value: unknown, depth: number): JsonObject {
    if (!isObject(value) || depth > maxDepth || this.#isTooLarge) return { type: 'object' }
    const opened: JsonObject[] = []
    const schema = typed(singleType(this.#flatten(this.#resolve(value, opened), opened, 0)))
    const type = stringAt(schema, 'type')
    const result: Record<string, unknown> = {}
    for (const [key, part] of Object.entries(schema)) {
      this.#charge(key.length)
      if (!keptKeywords.has(key)) continue
      if (key === 'enum' && type !== 'string') continue
      if (key === 'format' && !keptFormats.has(String(part))) continue
      // Some models reject an object with empty `properties`.
      if (key === 'properties' && isObject(part) && Object.keys(part).length === 0) continue
      result[key] = this.#cleanPart(key, part, depth + 1)
    }
    if (type === 'array' && !isObject(field(schema, 'items'))) result.items = { type: 'string' }
    for (const target of opened) this.#open.delete(target)
    return result
  }

  #cleanPart(key: string, part: unknown, depth: number): unknown {
    if (key === 'items') return this.#clean(part, depth)
    if (key === 'anyOf' && Array.isArray(part)) return part.map((one) => this.#clean(one, depth))
    if (key === 'properties' && isObject(part)) {
      const entries = Object.entries(part).map(([name, schema]) => {
        this.#charge(name.length)
        return [name, this.#clean(schema, depth)]
      })
      return Object.fromEntries(entries)
    }
    if (this.#left !== undefined) this.#charge(JSON.stringify(part)?.length ?? 0)
    return part
  }

  /** Replaces a reference by its target, which is added to `opened`. */
  #resolve(schema: JsonObject, opened: JsonObject[]): JsonObject {
    let resolved = schema
    for (;;) {
      const reference = stringAt(resolved, '$ref')
      if (reference === undefined || !reference.startsWith('#')) return resolved
      this.#left ??= JSON.stringify(this.#root).length * maxGrowth + maxAddedCharacters
      const siblings = without(resolved, '$ref')
      const target = this.#targetOf(reference)
      if (target === undefined) return siblings
      if (this.#open.has(target) || target === this.#root) return { ...stub(target), ...siblings }
      this.#charge(reference.length + Object.keys(target).length)
      if (this.#isTooLarge) return siblings
      this.#open.add(target)
      opened.push(target)
      resolved = { ...target, ...siblings }
    }
  }

  #targetOf(reference: string): JsonObject | undefined {
    let target: unknown = this.#root
    for (const part of reference.split('/').slice(1)) {
      target = field(target, part.replaceAll('~1', '/').replaceAll('~0', '~'))
    }
    return isObject(target) ? target : undefined
  }

  /** Merges the schemas in `allOf`: joins properties and required names, overwrites other keywords. */
  #flatten(schema: JsonObject, opened: JsonObject[], depth: number): JsonObject {
    const parts = listAt(schema, 'allOf').filter(isObject)
    if (parts.length === 0 || depth > maxDepth) return schema
    const merged = new Map(Object.entries(without(schema, 'allOf')))
    const properties = new Map(Object.entries(propertiesOf(schema)))
    const required = new Set(listAt(schema, 'required'))
    for (const part of parts) {
      if (this.#isTooLarge) break
      const flat = this.#flatten(this.#resolve(part, opened), opened, depth + 1)
      for (const [key, value] of Object.entries(flat)) merged.set(key, value)
      for (const [name, value] of Object.entries(propertiesOf(flat))) properties.set(name, value)
      for (const name of listAt(flat, 'required')) required.add(name)
    }
    if (properties.size > 0) merged.set('properties', Object.fromEntries(properties))
    if (required.size > 0) merged.set('required', [...required])
    return Object.fromEntries(merged)
  }
}

const propertiesOf = (schema: JsonObject): JsonObject => {
  const properties = field(schema, 'properties')
  return isObject(properties) ? properties : {}
}

/** Stands for a schema inside itself, because the subset has no references. */
const stub = (target: JsonObject): JsonObject =>
  field(target, 'type') === 'array'
    ? { type: 'array', items: { type: 'object' } }
    : { type: 'object' }

/** Keywords whose values are data. */
const dataKeywords = new Set(['enum', 'const', 'default', 'example', 'examples'])

/**
 * Returns a schema as vendor D reads JSON Schema: definitions are in `$defs`, and a reference has no other
 * keywords.
 */
function jsonSchema(root: JsonObject): JsonObject {
  const convert = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(convert)
    if (!isObject(value)) return value
    const reference = stringAt(value, '$ref')
    const entries = Object.entries(value).flatMap(([key, part]) => {
      const name = value === root && key === 'definitions' ? '$defs' : key
      if (reference === undefined || name === '$defs') {
        return [[name, dataKeywords.has(key) ? part : convert(part)]]
      }
      return key === '$ref' ? [[name, reference.replace(/^#\/definitions\//, '#/$defs/')]] : []
    })
    return Object.fromEntries(entries)
  }
  const converted = convert(root)
  return isObject(converted) ? converted : { type: 'object' }
}

const jsonSchemaFields = {
  parameters: 'parametersJsonSchema',
  responseSchema: 'responseJsonSchema',
} as const

/** Returns the field of vendor D with a schema. Its size is bounded by the size of the schema. */
export function schemaField(name: keyof typeof jsonSchemaFields, schema: unknown): JsonObject {
  if (!isObject(schema)) return { [name]: { type: 'object' } }
  const inlined = new SchemaInliner(schema).inline()
  return inlined === undefined
    ? { [jsonSchemaFields[name]]: jsonSchema(schema) }
    : { [name]: inlined }
}
