/**
 * Nodes -> OpenAPI v3 structural schemas, as CRDs have them (Kubernetes, "Specifying a structural
 * schema"). No defaults are written: what a field means where it is absent is decided at run time.
 */
import { describeField } from './describe.ts'
import type { IntegerNode, ListNode, MapNode, Node, ObjectNode, Rule, TextNode } from './field.ts'
import { quantityPattern } from './quantity.ts'

/** A JSONSchemaProps of apiextensions.k8s.io/v1. */
export interface OpenApiSchema {
  readonly [keyword: string]: unknown
}

/** The structural schema of a node. */
export function toOpenApi(node: Node, description?: string): OpenApiSchema {
  return {
    ...(description === undefined || description === '' ? {} : { description }),
    ...shapeOf(node),
    ...validations([
      ...(node.rules ?? []),
      ...(node.type === 'map' && node.refusesNull === true ? [withoutNull] : []),
      ...(node.type === 'integer' && node.bytes === true ? [quantityRule(node)] : []),
    ]),
  }
}

/** Offline validation says it of the entry itself; the server has no path for that. */
const withoutNull: Rule = {
  message: 'no entry may be null; leave it out',
  cel: 'self.all(name, type(self[name]) == string)',
  holds: (value: object) => !Object.values(value).includes(null),
}

/** The bounds of a number of bytes that is a string; parts of a byte are rounded up. */
function quantityRule({ min = 0, max = Number.MAX_SAFE_INTEGER }: IntegerNode): Rule {
  const atLeast = `quantity(self).isGreaterThan(quantity('${min - 1}'))`
  const atMost = `quantity(self).compareTo(quantity('${max}')) <= 0`
  return {
    message: `must be ${min} to ${max} bytes`,
    cel: `type(self) == int || (isQuantity(self) && ${atLeast} && ${atMost})`,
    holds: () => true,
  }
}

function shapeOf(node: Node): OpenApiSchema {
  switch (node.type) {
    case 'text':
      return textShape(node)
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
        ? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
        : { nullable: true, 'x-kubernetes-preserve-unknown-fields': true }
    case 'intOrString':
      return present({
        anyOf: [{ type: 'integer' }, { type: 'string' }],
        pattern: node.pattern,
        'x-kubernetes-int-or-string': true,
      })
  }
}

/** Leaves out members that are undefined, so that printed schemas have no empty keywords. */
function present(members: Readonly<Record<string, unknown>>): OpenApiSchema {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

const textShape = (node: TextNode): OpenApiSchema =>
  present({
    type: 'string',
    enum: node.values,
    minLength: node.min,
    maxLength: node.max,
    pattern: node.pattern,
  })

const integerShape = (node: IntegerNode): OpenApiSchema =>
  present({
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
  return present({
    type: 'array',
    items: toOpenApi(node.items),
    minItems: node.min,
    maxItems: node.max,
    'x-kubernetes-list-type': unique === undefined ? 'atomic' : unique === 'value' ? 'set' : 'map',
    'x-kubernetes-list-map-keys': typeof unique === 'object' ? unique.by : undefined,
  })
}

const mapShape = (node: MapNode): OpenApiSchema =>
  present({
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
  return present({
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

function validations(rules: readonly Rule[]): OpenApiSchema {
  const written = rules.flatMap(({ message, cel, at }) =>
    cel === undefined
      ? []
      : [{ rule: cel, message, ...(at === undefined ? {} : { fieldPath: `.${at}` }) }],
  )
  return written.length > 0 ? { 'x-kubernetes-validations': written } : {}
}
