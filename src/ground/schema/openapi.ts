/**
 * Converts nodes to OpenAPI v3 structural schemas for CRDs (Kubernetes, "Specifying a structural schema"). No
 * defaults are written, because the meaning of an omitted field is decided at run time.
 */
import { describeField } from './describe.ts'
import type { IntegerNode, ListNode, MapNode, Node, ObjectNode, Rule } from './field.ts'
import { toJsonSchema, withoutUndefined } from './json-schema.ts'
import { quantityPattern } from './quantity.ts'

/** The JSONSchemaProps type of apiextensions.k8s.io/v1. */
export interface OpenApiSchema {
  readonly [keyword: string]: unknown
}

const anyObject = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** Returns the structural schema of a node. */
export function toOpenApi(node: Node, description?: string): OpenApiSchema {
  const described = description === undefined || description === '' ? {} : { description }
  if (node.type === 'object' && node.isBrief === true) return { ...described, ...anyObject }
  return {
    ...described,
    ...shapeOf(node),
    ...validations([
      ...(node.rules ?? []),
      ...(node.type === 'map' && node.refusesNull === true ? [withoutNull] : []),
      ...(node.type === 'integer' && node.bytes === true ? [quantityRule(node)] : []),
    ]),
  }
}

/** The API server reports it for the whole map; offline validation reports the entry itself. */
const withoutNull: Rule = {
  message: 'no entry may be null; leave it out',
  cel: 'self.all(name, type(self[name]) == string)',
  holds: (value: object) => !Object.values(value).includes(null),
}

/**
 * Checks the bounds of a number of bytes that is written as a string; fractions of a byte are rounded up. The text is read
 * once, because the API server limits what rules may cost, and its pattern says what is wrong if it is no quantity.
 */
function quantityRule({ min = 0, max = Number.MAX_SAFE_INTEGER }: IntegerNode): Rule {
  const atLeast = `bytes.isGreaterThan(quantity('${min - 1}'))`
  const atMost = `bytes.compareTo(quantity('${max}')) <= 0`
  return {
    message: `must be ${min} to ${max} bytes`,
    cel: `type(self) == int || [quantity(self)].all(bytes, ${atLeast} && ${atMost})`,
    holds: () => true,
  }
}

function shapeOf(node: Node): OpenApiSchema {
  switch (node.type) {
    case 'text':
      return toJsonSchema(node)
    case 'integer':
      return integerShape(node)
    case 'boolean':
      return { type: 'boolean' }
    case 'list':
      return listShape(node)
    case 'map':
      return mapShape(node)
    case 'object':
      return objectShape(node)
    case 'json':
      return node.objectOnly === true
        ? anyObject
        : { nullable: true, 'x-kubernetes-preserve-unknown-fields': true }
    case 'intOrString':
      return withoutUndefined({
        anyOf: [{ type: 'integer' }, { type: 'string' }],
        pattern: node.pattern,
        'x-kubernetes-int-or-string': true,
      })
  }
}

const integerShape = (node: IntegerNode): OpenApiSchema =>
  withoutUndefined({
    ...(node.bytes === true
      ? {
          anyOf: [{ type: 'integer' }, { type: 'string' }],
          pattern: quantityPattern,
          'x-kubernetes-int-or-string': true,
        }
      : { type: 'integer', format: 'int64' }),
    enum: node.values,
    minimum: node.min,
    maximum: node.max,
  })

function listShape(node: ListNode): OpenApiSchema {
  const { unique } = node
  return withoutUndefined({
    type: 'array',
    items: toOpenApi(node.items),
    minItems: node.min,
    maxItems: node.max,
    // Lists without a type are atomic.
    'x-kubernetes-list-type': unique === undefined ? undefined : unique === 'value' ? 'set' : 'map',
    'x-kubernetes-list-map-keys': typeof unique === 'object' ? unique.by : undefined,
  })
}

const mapShape = (node: MapNode): OpenApiSchema =>
  withoutUndefined({
    type: 'object',
    additionalProperties: {
      ...toOpenApi(node.values),
      ...(node.refusesNull === true && { nullable: true }),
    },
    maxProperties: node.max,
  })

function objectShape(node: ObjectNode): OpenApiSchema {
  const fields = Object.entries(node.fields)
  if (fields.length === 0) return { type: 'object' }
  const needed = fields.filter(([, property]) => property.required).map(([name]) => name)
  return withoutUndefined({
    type: 'object',
    required: needed.length > 0 ? needed : undefined,
    properties: Object.fromEntries(
      fields.map(([name, property]) => [
        name,
        toOpenApi(property.schema.node, describeField(property)),
      ]),
    ),
  })
}

/**
 * Returns a schema of at most `maxLength` characters, if its descriptions make it longer. First, objects of equal
 * fields describe them once, at the place nearest to the root: users read `kubectl explain` from there. If that is not
 * enough, fields with the same name and description are described once. Then descriptions are left out from the
 * deepest fields upwards.
 */
export function shortened(schema: OpenApiSchema, maxLength: number): OpenApiSchema {
  const root = structuredClone(schema)
  const isLong = () => JSON.stringify(root).length > maxLength
  if (isLong()) describeOnce(levelsOf(root), (fields) => JSON.stringify(fields))
  if (isLong()) {
    const single = levelsOf(root).map((objects) => objects.flatMap(eachAlone))
    describeOnce(single, (fields) => JSON.stringify(descriptionsOf(fields)))
  }
  const levels = levelsOf(root)
  while (isLong() && levels.length > 0) levels.pop()?.forEach(withoutDescriptions)
  return root
}

/** The fields of an object, as in `properties`. */
type Fields = Readonly<Record<string, { description?: string }>>

/** Returns the fields of all objects, for each depth. */
function levelsOf(root: OpenApiSchema): Fields[][] {
  const levels: Fields[][] = []
  for (let level = [root]; level.length > 0; ) {
    const objects = level.map(({ properties }) => (properties ?? {}) as Fields)
    levels.push(objects)
    level = level.flatMap(({ items, additionalProperties }, index) => [
      ...Object.values(objects[index] ?? {}),
      ...([items, additionalProperties].filter(Boolean) as OpenApiSchema[]),
    ])
  }
  return levels
}

/** Removes the descriptions of fields whose key has occurred before. */
function describeOnce(levels: readonly Fields[][], keyOf: (fields: Fields) => string): void {
  const described = new Set<string>()
  for (const fields of levels.flat()) {
    const key = keyOf(fields)
    if (described.has(key)) withoutDescriptions(fields)
    else described.add(key)
  }
}

const eachAlone = (fields: Fields): Fields[] =>
  Object.entries(fields).map(([name, field]) => ({ [name]: field }))

const descriptionsOf = (fields: Fields) =>
  Object.entries(fields).map(([name, { description }]) => [name, description])

function withoutDescriptions(fields: Fields): void {
  for (const field of Object.values(fields)) delete field.description
}

function validations(rules: readonly Rule[]): OpenApiSchema {
  const written = rules.flatMap(({ message, cel, at }) =>
    cel === undefined
      ? []
      : [{ rule: cel, message, ...(at === undefined ? {} : { fieldPath: `.${at}` }) }],
  )
  return written.length > 0 ? { 'x-kubernetes-validations': written } : {}
}
