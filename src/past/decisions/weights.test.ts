import { create, toBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { BlockSchema } from '../../../proto/gen/decisions_pb.ts'
import { closeFrame, frameBytes } from './frame.ts'
import { readBlocks } from './read.ts'

const decisions = [
  { id: 'passed', status: 200, ending: 1 },
  { id: 'cut', status: 200, ending: 2 },
  { id: 'refused', status: 403, ending: 1 },
  { id: 'weighed', status: 200, ending: 1, weight: 12.5 },
]

function weightsOf(block: { readonly share?: number; readonly setting?: string }) {
  const texts = ['complete', 'client-closed']
  const bytes = toBinary(
    BlockSchema,
    create(BlockSchema, { version: 1, texts, decisions, ...block }),
  )
  const framed = Buffer.concat([Buffer.alloc(frameBytes), bytes])
  closeFrame(framed, framed.length)
  return Array.from(readBlocks(framed, 'memory'), (result) =>
    'decision' in result ? [result.decision.setting, result.decision.weight] : [],
  )
}

it('reads the weight of each record, which is 1 if it is not set', () => {
  expect(weightsOf({ share: 0, setting: 'sample' })).toEqual([
    ['sample', undefined],
    ['sample', undefined],
    ['sample', undefined],
    ['sample', 12.5],
  ])
})

it('derives the weights of older blocks, which have none, from their share', () => {
  expect(weightsOf({ share: 0.05 }).slice(0, 3)).toEqual([
    ['5%', 20],
    ['5%', undefined],
    ['5%', undefined],
  ])
  for (const share of [0, 1]) {
    expect(weightsOf({ share }).map(([, weight]) => weight)).toEqual([
      undefined,
      undefined,
      undefined,
      12.5,
    ])
  }
  expect(weightsOf({})[0]).toEqual([undefined, undefined])
})
