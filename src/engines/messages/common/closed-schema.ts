/**
 * Schemas that a provider enforces. Providers enforce a subset of JSON Schema: objects are closed, and the
 * description states the other constraints for the model.
 */
import { isObject, type JsonObject, listAt, objectAt } from '../json/json.ts'

const keptFormats: ReadonlySet<unknown> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email'],
  ...['hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
])

const isScalar = (value: unknown): boolean => value === null || typeof value !== 'object'

/** Returns the value of a keyword in an enforced schema; undefined if the provider refuses it. */
type Convert = (value: unknown, schema: JsonObject) => unknown

const asList: Convert = (value) => (Array.isArray(value) ? value.map(closedSchema) : undefined)
const asMap: Convert = (value) =>
  isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, closedSchema(one)]))
    : undefined
const asIs: Convert = (value) => value

const keywords: Readonly<Record<string, Convert>> = {
  $defs: asMap,
  properties: asMap,
  items: closedSchema,
  anyOf: asList,
  allOf: asList,
  enum: (value) => (Array.isArray(value) && value.every(isScalar) ? value : undefined),
  const: (value) => (isScalar(value) ? value : undefined),
  type: asIs,
  title: asIs,
  required: asIs,
  description: asIs,
  format: (value) => (keptFormats.has(value) ? value : undefined),
  minItems: (value) => (value === 0 || value === 1 ? value : undefined),
}

/** Keywords that demand nothing, or whose meaning every closed schema has. */
const dropped: ReadonlySet<string> = new Set(['$schema', '$id', 'strict'])

/** Names of keywords in older schemas. */
const renamed: Readonly<Record<string, string>> = { definitions: '$defs', oneOf: 'anyOf' }

/** Returns a schema that a provider can enforce. */
export function closedSchema(schema: unknown): unknown {
  if (!isObject(schema)) return schema
  const reference = schema.$ref
  if (typeof reference === 'string') {
    const definitions = schema.$defs ?? schema.definitions
    const target = reference.replace(/^#\/definitions\//, '#/$defs/')
    return { $ref: target, ...(definitions !== undefined && { $defs: asMap(definitions, schema) }) }
  }
  const closed: Record<string, unknown> = {}
  const demands: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    const name = Object.hasOwn(renamed, key) ? (renamed[key] ?? key) : key
    const convert = Object.hasOwn(keywords, name) ? keywords[name] : undefined
    const converted = convert?.(value, schema)
    if (converted !== undefined) closed[name] = converted
    else if (!dropped.has(key) && !isClosing(key, value)) {
      demands.push(`${key}: ${JSON.stringify(value)}`)
    }
  }
  if (isObjectSchema(schema)) closed.additionalProperties = false
  if (demands.length === 0) return closed
  const { description } = closed
  const told = `{${demands.join(', ')}}`
  return {
    ...closed,
    description: typeof description === 'string' ? `${description}\n\n${told}` : told,
  }
}

const isClosing = (key: string, value: unknown): boolean =>
  key === 'additionalProperties' && typeof value === 'boolean'

const isObjectSchema = ({ type, properties }: JsonObject): boolean =>
  type === 'object' || properties !== undefined || (Array.isArray(type) && type.includes('object'))

/** Keywords of schemas that vendor A enforces. */
const strictKeywords: ReadonlySet<string> = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf'],
  ...['$ref', '$defs', 'definitions', 'title', 'description', 'pattern', 'format', 'multipleOf'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minItems', 'maxItems'],
  ...['$schema', '$id'],
])

/** Vendor A refuses to enforce schemas with open objects or optional properties. */
export const strictness = (strict: boolean | undefined, schema: unknown): true | undefined =>
  strict === true && isStrictSchema(schema) ? true : undefined

/** Returns true if vendor A can enforce a schema: its objects are closed, and all their properties are required. */
function isStrictSchema(schema: unknown): boolean {
  if (!isObject(schema) || !Object.keys(schema).every((key) => strictKeywords.has(key))) {
    return false
  }
  const properties = objectAt(schema, 'properties')
  if (isObjectSchema(schema)) {
    const required = new Set(listAt(schema, 'required'))
    const areRequired = Object.keys(properties ?? {}).every((name) => required.has(name))
    if (schema.additionalProperties !== false || !areRequired) return false
  }
  const inner = [
    ...Object.values(properties ?? {}),
    ...Object.values(objectAt(schema, '$defs') ?? objectAt(schema, 'definitions') ?? {}),
    ...listAt(schema, 'anyOf'),
    ...(schema.items === undefined ? [] : [schema.items]),
  ]
  return inner.every(isStrictSchema)
}
