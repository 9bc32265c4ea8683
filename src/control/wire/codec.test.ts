import { nestedTypes } from '@bufbuild/protobuf/reflect'
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  type Backend as BackendMessage,
  BackendSchema,
  file_resource,
  type Resource as ResourceMessage,
} from '../../../proto/gen/resource_pb.ts'
import { backendDefinitions } from '../../gateway/backends/definitions.ts'
import type { Destinations, Resource } from '../../ground/model/resources.ts'
import { decodeDelta } from './decode.ts'
import { encodeBody, encodeDelta } from './encode.ts'
import recorded from './recorded-bytes.json' with { type: 'json' }
import { shapes } from './shapes.ts'

const samples = recorded as unknown as readonly {
  readonly name: string
  readonly bytes: string
  readonly resource: Resource
}[]

describe('the encoded bytes of resources', () => {
  it.each(samples)('are the same as in earlier versions: $name', ({ bytes, resource }) => {
    expect(Buffer.from(encodeBody(resource)).toString('base64')).toBe(bytes)
    const delta = { sequence: 1, upserted: [{ version: '1', resource }], removed: [] }
    expect(decodeDelta(encodeDelta(delta)).upserted).toStrictEqual(delta.upserted)
  })
})

describe('the message of a GatewayBackend', () => {
  it('encodes the destination of every kind of backend', () => {
    const { field } = BackendSchema
    const missing = backendDefinitions.filter(({ type }) => field[type]?.oneof === undefined)
    expect(missing.map(({ type }) => type)).toEqual([])
  })
})

/** Members that the codec would drop because the message has no field of that name, by message. */
type Dropped = {
  [Type in keyof Destinations]: Exclude<
    keyof Destinations[Type],
    keyof MessageOf<BackendMessage['destination'], Type>
  >
} & {
  [Type in Resource['type']]: Exclude<
    keyof Extract<Resource, { readonly type: Type }>,
    keyof MessageOf<ResourceMessage['kind'], Type> | keyof ResourceMessage | Reshaped
  >
}
type MessageOf<Field, Case> =
  Extract<Field, { readonly case: Case }> extends { value: infer Value } ? Value : never

/** The discriminator, what `age` contains, and the names that `shapes.ts` spreads. */
type Reshaped = 'type' | 'created' | 'order' | 'gateway' | 'policy'

it('carries every member of resources and of destinations', () => {
  expectTypeOf<Dropped[keyof Dropped]>().toBeNever()
})

describe('the table of message shapes', () => {
  it('refers only to existing messages and fields', () => {
    const all = [...nestedTypes(file_resource)].filter((desc) => desc.kind === 'message')
    const messages = new Map(
      all.map((desc) => [desc.typeName.slice('sluice.resource.v1.'.length), desc.field]),
    )
    const missing = Object.entries(shapes).flatMap(([name, shape]) => {
      const { words = {}, inlined = [], shared = [], absentIfEmpty = [] } = shape
      const fields = [...Object.keys(words), ...inlined, ...shared, ...absentIfEmpty]
      const known = messages.get(name)
      if (known === undefined) return [name]
      return fields.filter((field) => known[field] === undefined).map((one) => `${name}.${one}`)
    })
    expect(missing).toEqual([])
  })
})
