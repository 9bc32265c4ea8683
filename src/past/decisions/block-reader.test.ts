import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { BlockSchema } from '../../../proto/gen/decisions_pb.ts'
import { readBlock } from './block-reader.ts'

const texts = ['GET', 'shop.example', 'x-tenant', 'complete']
const fields = { method: 1, host: 2, port: 80, status: 200, ending: 4 }
const headers = { headerNames: [3], headerValues: [{ field: 0, value: 'blue' }] }

const read = (block: MessageInitShape<typeof BlockSchema>) => [
  ...readBlock(toBinary(BlockSchema, create(BlockSchema, { texts, ...block }))),
]

it('reads the same from decisions with common parts as from those of version 1', () => {
  const commons = [headers, fields]
  const decisions = ['a', 'b'].map((id) => ({ id, path: `/${id}?q=1`, durationUs: 5n }))
  const old = read({
    version: 1,
    decisions: decisions.map((one) => ({ ...one, ...fields, ...headers })),
  })
  const shared = decisions.map((one) => ({ ...one, commonHeaders: 1, commonFields: 2 }))
  expect(read({ version: 2, commons, decisions: shared })).toEqual(old)
  expect(old[1]).toMatchObject({
    id: 'b',
    request: { host: 'shop.example', path: '/b', headers: [{ name: 'x-tenant', value: 'blue' }] },
    response: { status: 200, ending: 'complete', durationMs: 0.005 },
  })
})

it('refuses blocks of other versions, and references to parts that the block lacks', () => {
  expect(() => read({ version: 3 })).toThrow(
    'version 3 of the format; this version of Sluice reads 1 and 2',
  )
  const decisions = [{ id: 'a', commonHeaders: 1 }]
  expect(() => read({ version: 2, decisions })).toThrow('the block has no common part 1')
})
