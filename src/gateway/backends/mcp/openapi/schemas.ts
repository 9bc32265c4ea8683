/** Converts schemas of OpenAPI documents to JSON Schema 2020-12, with definitions instead of expansion. */
import { isObject } from '../../../../ground/base/json-object.ts'
import { DocumentProblem, type Fields, type OpenApiDocument, pointerParts } from './document.ts'

/** Maximum number of schemas in the schema of one tool. */
const maxSchemas = 5_000
/** Maximum depth of a schema without references. */
const maxDepth = 64
/** Maximum number of definitions that are inside of each other when they are first read. */
const maxNested = 100

/** Members without a meaning for JSON Schema, or with one that depends on the place of the schema. */
const dropped = new Set([
  'discriminator',
  'example',
  'externalDocs',
  'nullable',
  'xml',
  '$id',
  '$schema',
  '$anchor',
  '$comment',
])
/** Members that hold one schema, a list of schemas, or schemas by name. */
const single = new Set([
  'items',
  'additionalProperties',
  'additionalItems',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentSchema',
])
const lists = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const named = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
])

/** Members whose items must be unique. Clients refuse all tools of a server if one schema is not valid. */
const unique = new Set(['enum', 'required', 'type'])

type Direction = 'request' | 'response'

/** The schemas of one tool. */
export class ToolSchemas {
  readonly #document: OpenApiDocument
  readonly #direction: Direction
  /** Names of definitions by the references to them. */
  readonly #names = new Map<string, string>()
  readonly #definitions = new Map<string, unknown>()
  #count = 0
  #nested = 0

  constructor(document: OpenApiDocument, direction: Direction) {
    this.#document = document
    this.#direction = direction
  }

  /** Converts a schema. References in it name definitions. @throws DocumentProblem */
  convert(schema: unknown, depth = 0): unknown {
    if (typeof schema === 'boolean') return schema
    if (!isObject(schema)) return {}
    if (++this.#count > maxSchemas || depth > maxDepth) {
      throw new DocumentProblem('its schemas are too large')
    }
    const { $ref } = schema
    if (typeof $ref !== 'string') return this.#convertFields(schema, depth)
    const reference = { $ref: `#/$defs/${this.#define($ref)}` }
    if (this.#document.version !== '3.1') return reference
    const { $ref: _, ...siblings } = schema
    return { ...this.#convertFields(siblings, depth), ...reference }
  }

  /** The definitions, as a member of the schema that refers to them. */
  definitions(): Fields {
    return this.#definitions.size === 0 ? {} : { $defs: Object.fromEntries(this.#definitions) }
  }

  #define(ref: string): string {
    const known = this.#names.get(ref)
    if (known !== undefined) return known
    const last = (pointerParts(ref).at(-1) ?? 'root').replace(/[^A-Za-z0-9_.-]/g, '_')
    const taken = new Set(this.#names.values())
    let name = last
    for (let number = 2; taken.has(name); number++) name = `${last}_${number}`
    this.#names.set(ref, name)
    // The name is known first, because the schema may refer to itself.
    this.#definitions.set(name, true)
    if (++this.#nested > maxNested) throw new DocumentProblem('its schemas are too large')
    this.#definitions.set(name, this.convert(this.#document.at(ref)))
    this.#nested--
    return name
  }

  #convertFields(schema: Fields, depth: number): Fields {
    const converted: Record<string, unknown> = {}
    for (const [key, value] of Object.entries(schema)) {
      if (dropped.has(key) || key.startsWith('x-')) continue
      // Documents write `required: true` in properties, which means nothing there.
      if (key === 'required' && !Array.isArray(value)) continue
      converted[key] = unique.has(key)
        ? withoutDuplicates(value)
        : this.#convertMember(key, value, depth)
    }
    this.#dropOtherDirection(schema, converted)
    if (schema.example !== undefined && schema.examples === undefined) {
      converted.examples = [schema.example]
    }
    return this.#document.version === '3.1' ? converted : fromOlder(schema, converted)
  }

  #convertMember(key: string, value: unknown, depth: number): unknown {
    if (single.has(key) && !Array.isArray(value)) return this.convert(value, depth + 1)
    if ((lists.has(key) || single.has(key)) && Array.isArray(value)) {
      return value.map((one) => this.convert(one, depth + 1))
    }
    if (!named.has(key) || !isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, this.convert(one, depth + 1)]),
    )
  }

  /** Drops properties that only responses have from requests, and the reverse. */
  #dropOtherDirection({ properties }: Fields, converted: Record<string, unknown>): void {
    if (!isObject(properties)) return
    const mark = this.#direction === 'request' ? 'readOnly' : 'writeOnly'
    const others = Object.entries(properties).flatMap(([name, one]) =>
      isObject(one) && one[mark] === true ? [name] : [],
    )
    if (others.length === 0) return
    const kept = Object.entries(converted.properties as Fields)
    converted.properties = Object.fromEntries(kept.filter(([name]) => !others.includes(name)))
    if (Array.isArray(converted.required)) {
      converted.required = converted.required.filter((name) => !others.includes(String(name)))
    }
  }
}

function withoutDuplicates(value: unknown): unknown {
  if (!Array.isArray(value)) return value
  return [...new Map(value.map((one) => [JSON.stringify(one), one])).values()]
}

/** What differs in versions before 3.1, whose schemas are a dialect of their own. */
function fromOlder(
  { nullable, exclusiveMinimum, exclusiveMaximum }: Fields,
  converted: Record<string, unknown>,
): Fields {
  for (const [key, bound, flag] of [
    ['exclusiveMinimum', 'minimum', exclusiveMinimum],
    ['exclusiveMaximum', 'maximum', exclusiveMaximum],
  ] as const) {
    if (typeof flag !== 'boolean') continue
    delete converted[key]
    if (!flag || converted[bound] === undefined) continue
    converted[key] = converted[bound]
    delete converted[bound]
  }
  if (converted.type === 'file') converted.type = 'string'
  if (nullable !== true) return converted
  if (typeof converted.type !== 'string') return { anyOf: [converted, { type: 'null' }] }
  const values = converted.enum
  return {
    ...converted,
    type: [converted.type, 'null'],
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
  }
}
