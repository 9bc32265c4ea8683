import { describe, expect, it } from 'vitest'
import { integer, json, list, map, object, optional, required, text } from './field.ts'
import { toJsonSchema } from './json-schema.ts'
import { shortened, toOpenApi } from './openapi.ts'
import { atLeastOneOf, atMostOneOf, exactlyOneOf, rule } from './rules.ts'

const schema = object(
  'Thing',
  {
    namespace: optional(text({ min: 1, max: 3, pattern: '^a' }), 'Where.'),
    size: required(integer({ min: 1 }), { doc: 'How much.', unit: 'bytes', default: 7 }),
    tags: optional(
      list(text(), { max: 2, unique: 'value', rules: [rule({ message: 'm', holds: () => true })] }),
      'Tags.',
    ),
    named: optional(
      list(object('Named', { name: required(text(), 'N.') }), { unique: { by: ['name'] } }),
      'Named.',
    ),
    free: optional(map(json(), { max: 4 }), 'Free.'),
  },
  { rules: [exactlyOneOf('namespace', 'tags')] },
)

describe('toOpenApi', () => {
  it('returns a structural schema with the rules as CEL', () => {
    expect(toOpenApi(schema.node, 'A thing.')).toEqual({
      description: 'A thing.',
      type: 'object',
      required: ['size'],
      properties: {
        namespace: {
          description: 'Where.',
          type: 'string',
          minLength: 1,
          maxLength: 3,
          pattern: '^a',
        },
        size: {
          description: 'How much. Unit: bytes. Default: 7.',
          type: 'integer',
          format: 'int64',
          minimum: 1,
          maximum: 2_147_483_647,
        },
        tags: {
          description: 'Tags.',
          type: 'array',
          items: { type: 'string' },
          maxItems: 2,
          'x-kubernetes-list-type': 'set',
        },
        named: {
          description: 'Named.',
          type: 'array',
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { description: 'N.', type: 'string' } },
          },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
        },
        free: {
          description: 'Free.',
          type: 'object',
          additionalProperties: { nullable: true, 'x-kubernetes-preserve-unknown-fields': true },
          maxProperties: 4,
        },
      },
      'x-kubernetes-validations': [
        {
          rule: 'has(self.__namespace__) != has(self.tags)',
          message: 'exactly one of namespace, tags must be set',
        },
      ],
    })
  })
})

describe('a schema that is too long', () => {
  const part = () => ({
    type: 'object',
    properties: { name: { type: 'string', description: 'Name.' } },
  })
  const whole = {
    type: 'object',
    properties: {
      one: { ...part(), description: 'The first.' },
      more: { type: 'array', items: part(), description: 'Others.' },
      deep: { type: 'object', properties: { b: { type: 'string', description: 'Deep.' } } },
    },
  }
  const lengthOf = (value: object) => JSON.stringify(value).length
  const described = (value: object) => JSON.stringify(value).match(/"description":"[^"]*"/g)

  it('describes equal objects once, then leaves out the deepest descriptions', () => {
    expect(shortened(whole, lengthOf(whole))).toEqual(whole)
    const once = shortened(whole, lengthOf(whole) - 1)
    expect(described(once)).toHaveLength(4)
    expect(once).toMatchObject({ properties: { one: part(), more: { items: { type: 'object' } } } })
    const shallow = shortened(whole, lengthOf(once) - 1)
    expect(described(shallow)).toEqual(['"description":"The first."', '"description":"Others."'])
    expect(described(shortened(whole, 0))).toBeNull()
  })
})

describe('toJsonSchema', () => {
  it('forbids unknown fields and includes the rules about groups of fields', () => {
    const { additionalProperties, allOf, required: needed } = toJsonSchema(schema.node)
    expect(additionalProperties).toBe(false)
    expect(needed).toEqual(['size'])
    expect(allOf).toEqual([{ oneOf: [{ required: ['namespace'] }, { required: ['tags'] }] }])
  })

  it('supports every kind of field group', () => {
    const grouped = object('G', {}, { rules: [atLeastOneOf('a', 'b'), atMostOneOf('c', 'd')] })
    expect(toJsonSchema(grouped.node).allOf).toEqual([
      { anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      {
        oneOf: [
          { required: ['c'] },
          { required: ['d'] },
          { not: { anyOf: [{ required: ['c'] }, { required: ['d'] }] } },
        ],
      },
    ])
  })
})
