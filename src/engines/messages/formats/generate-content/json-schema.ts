/** Converts a schema to JSON Schema as vendor D reads it: without `allOf` and `const`, which the vendor ignores. */
import { field, isObject, type JsonObject, listAt, stringAt } from '../../json/json.ts'

/** Keywords whose values are no schemas, so that nothing in them is changed. */
const dataKeywords: ReadonlySet<string> = new Set([
  'enum',
  'default',
  'example',
  'examples',
  'required',
])

/** Keywords whose values have schemas by name. */
const mapKeywords: ReadonlySet<string> = new Set([
  '$defs',
  'properties',
  'patternProperties',
  'dependentSchemas',
])

/** Maximum depth of `allOf` in `allOf`. */
const maxDepth = 32

/** Parts of `allOf` that are references are copied, up to this multiple of the schema and this many characters. */
const maxGrowth = 4
const maxAddedCharacters = 16 * 1024

/**
 * Returns a schema in which definitions are in `$defs`, a reference has no other keywords, a constant is the only
 * value of an `enum`, and the parts of `allOf` are one schema.
 */
export function jsonSchema(schema: unknown): JsonObject {
  return isObject(schema) ? new SchemaWriter(schema).write() : { type: 'object' }
}

/** Returns the schema of a tool; undefined for a tool without parameters. */
export function parametersSchema(schema: JsonObject): JsonObject | undefined {
  const { type: _type, properties, additionalProperties, $schema: _dialect, ...others } = schema
  const isEmpty = !isObject(properties) || Object.keys(properties).length === 0
  const isOpen = additionalProperties !== undefined && additionalProperties !== false
  return isEmpty && !isOpen && Object.keys(others).length === 0 ? undefined : jsonSchema(schema)
}

class SchemaWriter {
  readonly #root: JsonObject
  /** Characters that may still be copied; undefined until a reference is. */
  #left: number | undefined
  readonly #lengths = new Map<JsonObject, number>()

  constructor(root: JsonObject) {
    this.#root = root
  }

  write(): JsonObject {
    return this.#convert(this.#root)
  }

  #convert(given: JsonObject): JsonObject {
    const schema = this.#merge(given, 0)
    const reference = stringAt(schema, '$ref')?.replace(/^#\/definitions\//, '#/$defs/')
    const converted: Record<string, unknown> = reference === undefined ? {} : { $ref: reference }
    for (const [key, value] of Object.entries(schema)) {
      const name = key === 'definitions' ? '$defs' : key
      if (reference !== undefined && name !== '$defs') continue
      if (mapKeywords.has(name) && isObject(value)) {
        const entries = Object.entries(value).map(([inner, one]) => [inner, this.#convertAny(one)])
        converted[name] = Object.fromEntries(entries)
      } else if (name === 'const') converted.enum ??= [value]
      else converted[name] = dataKeywords.has(name) ? value : this.#convertAny(value)
    }
    return converted
  }

  #convertAny(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.#convertAny(one))
    return isObject(value) ? this.#convert(value) : value
  }

  /** Merges the schemas in `allOf`. */
  #merge(schema: JsonObject, depth: number): JsonObject {
    const parts = listAt(schema, 'allOf').filter(isObject)
    if (parts.length === 0 || depth > maxDepth) return schema
    const resolved = parts.map((part) => this.#resolve(part))
    if (resolved.includes(undefined)) return schema
    const { allOf: _parts, ...rest } = schema
    const merged = new MergedSchema(rest)
    for (const part of resolved) if (part !== undefined) merged.add(this.#merge(part, depth + 1))
    return merged.schema
  }

  /** Returns the target of a reference, and other schemas as they are; undefined if it must stay a reference. */
  #resolve(schema: JsonObject): JsonObject | undefined {
    const seen = new Set<JsonObject>()
    let resolved = schema
    for (;;) {
      const reference = stringAt(resolved, '$ref')
      if (reference === undefined) return resolved
      const target = this.#targetOf(reference)
      if (target === undefined || seen.has(target) || !this.#mayCopy(target)) return undefined
      seen.add(target)
      resolved = target
    }
  }

  #mayCopy(target: JsonObject): boolean {
    this.#left ??= JSON.stringify(this.#root).length * maxGrowth + maxAddedCharacters
    const length = this.#lengths.get(target) ?? JSON.stringify(target).length
    this.#lengths.set(target, length)
    this.#left -= length
    return this.#left >= 0
  }

  #targetOf(reference: string): JsonObject | undefined {
    if (!reference.startsWith('#')) return undefined
    let target: unknown = this.#root
    for (const part of reference.split('/').slice(1)) {
      target = field(target, part.replaceAll('~1', '/').replaceAll('~0', '~'))
    }
    return isObject(target) ? target : undefined
  }
}

/** Joins properties and required names of schemas; other keywords of later ones overwrite those of earlier ones. */
class MergedSchema {
  readonly #keywords = new Map<string, unknown>()
  readonly #properties = new Map<string, unknown>()
  readonly #required = new Set<unknown>()

  constructor(first: JsonObject) {
    this.add(first)
  }

  add({ properties, required, ...keywords }: JsonObject): void {
    for (const [name, value] of Object.entries(keywords)) this.#keywords.set(name, value)
    const more = isObject(properties) ? Object.entries(properties) : []
    for (const [name, one] of more) this.#properties.set(name, one)
    for (const name of Array.isArray(required) ? required : []) this.#required.add(name)
  }

  get schema(): JsonObject {
    return {
      ...Object.fromEntries(this.#keywords),
      ...(this.#properties.size > 0 && { properties: Object.fromEntries(this.#properties) }),
      ...(this.#required.size > 0 && { required: [...this.#required] }),
    }
  }
}
