/** Schemas of tools, for documents that were reported to other products. */
import { expect, it } from 'vitest'
import { compileDocument } from './operations.ts'

function bodySchema(schema: object, version = '3.0.3', schemas: object = {}): unknown {
  const requestBody = { content: { 'application/json': { schema } } }
  const paths = { '/x': { post: { operationId: 'x', requestBody } } }
  const document = { openapi: version, info: {}, paths, components: { schemas } }
  const { inputSchema } = compileDocument({ document }, 't').tools.get('x')?.definition ?? {}
  return (inputSchema as { properties: { body: unknown } }).properties.body
}

it('removes duplicates from lists, and a required that is not a list, because clients refuse them', () => {
  const kind = { type: ['string', 'string', 'null'], enum: ['a', 'a', null], required: true }
  const schema = { type: 'object', required: ['kind', 'kind'], properties: { kind } }
  expect(bodySchema(schema, '3.1.0')).toEqual({
    type: 'object',
    required: ['kind'],
    properties: { kind: { type: ['string', 'null'], enum: ['a', null] } },
  })
})

it('allows null where documents of version 3.0 do, with and without a type', () => {
  const properties = {
    nullable: { type: 'string', nullable: true },
    node: { nullable: true, allOf: [{ $ref: '#/components/schemas/Node' }] },
  }
  const schemas = { Node: { type: 'object' } }
  expect(bodySchema({ type: 'object', properties }, '3.0.3', schemas)).toMatchObject({
    properties: {
      nullable: { type: ['string', 'null'] },
      node: { anyOf: [{ allOf: [{ $ref: '#/$defs/Node' }] }, { type: 'null' }] },
    },
  })
})

it('adds no type beside anyOf', () => {
  const value = { anyOf: [{ type: 'string', maxLength: 2 }, { type: 'null' }], title: 'value' }
  const schema = { type: 'object', properties: { value } }
  expect(bodySchema(schema, '3.1.0')).toEqual(schema)
})
