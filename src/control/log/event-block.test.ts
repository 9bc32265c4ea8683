import { zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type EventBlock, packBlock, unpackBlock } from './event-block.ts'

const texts = Array.from({ length: 100 }, (_, index) => JSON.stringify({ id: `route-${index}` }))
const block = packBlock(201, texts)

/** The texts of a block, or why it cannot be read. */
const read = (damaged: EventBlock) => {
  try {
    return unpackBlock(damaged)
  } catch (error) {
    return (error as Error).message
  }
}

const refusal = expect.stringMatching(/^the events at positions 201 to 300 cannot be read: /)

describe('a block of events', () => {
  it('returns the texts that it was made of', () => {
    expect(block).toMatchObject({ first: 201, last: 300 })
    expect(unpackBlock(block)).toEqual(texts)
    expect(unpackBlock(packBlock(7, ['{"line":"one\\ntwo","é":"😀"}']))).toEqual([
      '{"line":"one\\ntwo","é":"😀"}',
    ])
  })

  it('is refused with its positions if a changed bit changes its texts', () => {
    let refused = 0
    for (let bit = 0; bit < block.body.length * 8; bit++) {
      const body = Uint8Array.from(block.body)
      body[bit >> 3] = (body[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      const result = read({ ...block, body })
      if (typeof result === 'string') refused++
      // A few bits of a frame have no meaning.
      expect(result, `bit ${bit}`).toEqual(typeof result === 'string' ? refusal : texts)
    }
    expect(refused / (block.body.length * 8)).toBeGreaterThan(0.95)
  })

  it('is refused with its positions if it is cut off anywhere', () => {
    for (let length = 0; length < block.body.length; length++) {
      const body = block.body.subarray(0, length)
      expect(read({ ...block, body }), `${length} bytes`).toEqual(refusal)
    }
  })

  it('is refused if it has another number of events than its positions say', () => {
    expect(read({ ...block, last: 301 })).toContain('their block has 100 events')
  })

  it('is refused before it needs much memory if it is far larger than a block can be', () => {
    const body = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024))
    expect(body.length).toBeLessThan(10_000)
    const before = process.memoryUsage().arrayBuffers
    expect(read({ first: 1, last: 1, body })).toMatch(/^the events at positions 1 to 1 /)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024)
  })
})
