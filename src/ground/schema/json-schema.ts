/** Converts nodes to JSON Schema (2020-12), for completion and checks in editors. */
import { describeField } from './describe.ts'
import type { FieldGroup, Node, ObjectNode } from './field.ts'
import { quantityPattern } from './quantity.ts'

interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** Returns the JSON Schema of a node. Of its rules, only those about groups of fields are included. */
export function toJsonSchema(node: Node): JsonSchema {
  return withoutUndefined({ ...shapeOf(node), ...groupsOf(node) })
}

function shapeOf(node: Node): JsonSchema {
  switch (node.type) {
    case 'text':
      return {
        type: 'string',
        enum: node.values,
        minLength: node.min,
        maxLength: node.max,
        pattern: node.pattern,
      }
    case 'integer':
      return {
        type: node.bytes === true ? ['integer', 'string'] : 'integer',
        pattern: node.bytes === true ? quantityPattern : undefined,
        enum: node.values,
        minimum: node.min,
        maximum: node.max,
      }
    case 'boolean':
      return { type: 'boolean' }
    case 'list':
      return {
        type: 'array',
        items: toJsonSchema(node.items),
        minItems: node.min,
        maxItems: node.max,
        uniqueItems: node.unique === 'value' ? true : undefined,
      }
    case 'map':
      return {
        type: 'object',
        additionalProperties: toJsonSchema(node.values),
        maxProperties: node.max,
      }
    case 'object':
      return objectShape(node)
    case 'json':
      return node.objectOnly === true ? { type: 'object' } : {}
    case 'intOrString':
      return withoutUndefined({ type: ['integer', 'string'], pattern: node.pattern })
  }
}

function objectShape(node: ObjectNode): JsonSchema {
  const fields = Object.entries(node.fields)
  const needed = fields.filter(([, property]) => property.required).map(([name]) => name)
  return {
    type: 'object',
    required: needed.length > 0 ? needed : undefined,
    properties: Object.fromEntries(
      fields.map(([name, property]) => [
        name,
        withoutUndefined({
          description: describeField(property),
          default: property.default ?? property.fill,
          ...toJsonSchema(property.schema.node),
        }),
      ]),
    ),
    additionalProperties: node.open === true ? undefined : false,
  }
}

function groupsOf(node: Node): JsonSchema {
  const groups = (node.rules ?? []).flatMap(({ group }) => (group === undefined ? [] : [group]))
  return groups.length > 0 ? { allOf: groups.map(groupSchema) } : {}
}

function groupSchema({ count, fields }: FieldGroup): JsonSchema {
  const each = fields.map((field) => ({ required: [field] }))
  if (count === 'exactly one') return { oneOf: each }
  if (count === 'at least one') return { anyOf: each }
  return { oneOf: [...each, { not: { anyOf: each } }] }
}

/** Leaves out keywords that are not set. */
export function withoutUndefined(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined))
}
