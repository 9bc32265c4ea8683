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
 * fields describe them once, at the place nearest to the root: users read `kubectl explain` from there. Then
 * descriptions are left out from the deepest fields upwards.
 */
export function shortened(schema: OpenApiSchema, maxLength: number): OpenApiSchema {
  const isLong = () => JSON.stringify(root).length > maxLength
  const root = structuredClone(schema)
  if (!isLong()) return root
  const described = new Set<string>()
  const levels: DescribedFields[] = []
  let level: OpenApiSchema[] = [root]
  while (level.length > 0) {
    const next: OpenApiSchema[] = []
    const ofLevel: DescribedFields = []
    for (const { properties, items, additionalProperties } of level) {
      const fields = Object.values((properties ?? {}) as Record<string, { description?: string }>)
      next.push(...fields, ...([items, additionalProperties].filter(Boolean) as OpenApiSchema[]))
      const text = JSON.stringify(properties)
      if (described.has(text)) withoutDescriptions(fields)
      else described.add(text)
      ofLevel.push(...fields)
    }
    levels.push(ofLevel)
    level = next
  }
  while (isLong() && levels.length > 0) withoutDescriptions(levels.pop() ?? [])
  return root
}

type DescribedFields = { description?: string }[]

function withoutDescriptions(fields: DescribedFields): void {
  for (const field of fields) delete field.description
}

function validations(rules: readonly Rule[]): OpenApiSchema {
  const written = rules.flatMap(({ message, cel, at }) =>
    cel === undefined
      ? []
      : [{ rule: cel, message, ...(at === undefined ? {} : { fieldPath: `.${at}` }) }],
  )
  return written.length > 0 ? { 'x-kubernetes-validations': written } : {}
}
