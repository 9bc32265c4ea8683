/**
 * Converts a JSON Schema to the subset that vendor D accepts: inlines references, flattens `allOf`,
 * replaces lists of types by `nullable` or `anyOf`, and drops unknown keywords.
 */
import { field, isObject, type JsonObject, listAt, objectAt, stringAt } from '../../json.ts'

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

/** Maximum depth of a schema. Deeper schemas are cut off, because references may be circular. */
const maxDepth = 32

function resolve(schema: JsonObject, root: JsonObject): JsonObject {
  const reference = stringAt(schema, '$ref')
  if (reference === undefined || !reference.startsWith('#/')) return schema
  let target: unknown = root
  for (const part of reference.slice(2).split('/')) {
    target = field(target, part.replaceAll('~1', '/').replaceAll('~0', '~'))
  }
  return isObject(target) ? { ...target, ...without(schema, '$ref') } : without(schema, '$ref')
}

function without(schema: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== name))
}

/** Merges the schemas in `allOf`: joins properties and required names, overwrites other keywords. */
function flatten(schema: JsonObject, root: JsonObject): JsonObject {
  const parts = listAt(schema, 'allOf').filter(isObject)
  if (parts.length === 0) return schema
  const own = without(schema, 'allOf')
  return parts.reduce((merged, part) => join(merged, resolve(part, root)), own)
}

function join(a: JsonObject, b: JsonObject): JsonObject {
  const [first, second] = [objectAt(a, 'properties'), objectAt(b, 'properties')]
  const required = new Set([...listAt(a, 'required'), ...listAt(b, 'required')])
  return {
    ...a,
    ...b,
    ...(first && second && { properties: { ...first, ...second } }),
    ...(required.size > 0 && { required: [...required] }),
  }
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

function clean(value: unknown, root: JsonObject, depth: number): JsonObject {
  if (!isObject(value) || depth > maxDepth) return { type: 'object' }
  const schema = typed(singleType(flatten(resolve(value, root), root)))
  const type = stringAt(schema, 'type')
  const result: Record<string, unknown> = {}
  for (const [key, part] of Object.entries(schema)) {
    if (!keptKeywords.has(key)) continue
    if (key === 'enum' && type !== 'string') continue
    if (key === 'format' && !keptFormats.has(String(part))) continue
    // Some models reject an object with empty `properties`.
    if (key === 'properties' && isObject(part) && Object.keys(part).length === 0) continue
    result[key] = cleanPart(key, part, root, depth + 1)
  }
  if (type === 'array' && !isObject(field(schema, 'items'))) result.items = { type: 'string' }
  return result
}

function cleanPart(key: string, part: unknown, root: JsonObject, depth: number): unknown {
  if (key === 'items') return clean(part, root, depth)
  if (key === 'anyOf' && Array.isArray(part)) return part.map((one) => clean(one, root, depth))
  if (key !== 'properties' || !isObject(part)) return part
  const entries = Object.entries(part).map(([name, schema]) => [name, clean(schema, root, depth)])
  return Object.fromEntries(entries)
}

export function cleanSchema(schema: unknown): JsonObject {
  return isObject(schema) ? clean(schema, schema, 0) : { type: 'object' }
}
