import { describe, expect, it } from 'vitest'
import type { BatchFrame } from './nats-frames.ts'
import { StreamIndex } from './nats-index.ts'

const route = 'sluice.test.HTTPRoute.shop.a'

/** A frame of a batch of events of one part each. */
function frameOf(batch: string, index: number, count: number, base: number): BatchFrame {
  const event = { number: index, part: 1, parts: 1, digest: `${batch}${index}` }
  return { batch, index, count, base, event, purgedUpTo: undefined }
}

function indexOf(...frames: (BatchFrame | undefined)[]): StreamIndex {
  const index = new StreamIndex()
  for (const [at, frame] of frames.entries()) {
    index.apply({ sequence: at + 1, subject: route, frame })
  }
  return index
}

describe('the index of a NATS stream', () => {
  it('counts a batch with consecutive frames once its last frame arrives', () => {
    const index = indexOf(frameOf('a', 1, 2, 0))
    expect([index.lastPosition(), index.decidedUpTo, index.openBatch]).toEqual([0, 0, 'a'])
    index.apply({ sequence: 2, subject: route, frame: frameOf('a', 2, 2, 0) })
    expect([index.lastPosition(), index.decidedUpTo, index.openBatch]).toEqual([2, 2, undefined])
    expect([index.sequenceOf(1), index.sequenceOf(2), index.positionAt(2)]).toEqual([1, 2, 2])
  })

  it('ignores a batch whose writer died, and its late frames', () => {
    const index = indexOf(
      frameOf('a', 1, 3, 0),
      frameOf('b', 1, 1, 0),
      frameOf('a', 2, 3, 0),
      frameOf('a', 3, 3, 0),
      frameOf('c', 1, 1, 1),
    )
    expect(index.lastPosition()).toBe(2)
    expect([index.sequenceOf(1), index.sequenceOf(2)]).toEqual([2, 5])
    expect(index.positionOf('a1')).toBeUndefined()
    expect(index.positionAt(3)).toBeUndefined()
  })

  it('ignores a batch that is interrupted by a foreign message', () => {
    const index = indexOf(frameOf('a', 1, 2, 0), undefined, frameOf('a', 2, 2, 0))
    expect([index.lastPosition(), index.decidedUpTo]).toEqual([0, 3])
  })

  it('ignores a batch with a gap, and keeps the positions of later batches', () => {
    const index = indexOf(frameOf('a', 1, 2, 0))
    index.apply({ sequence: 3, subject: route, frame: frameOf('b', 1, 1, 7) })
    expect([index.firstPosition(), index.lastPosition(), index.sequenceOf(8)]).toEqual([8, 8, 3])
  })

  it('ignores a batch that was appended to another state of the log', () => {
    const index = indexOf(frameOf('a', 1, 1, 0), frameOf('b', 1, 1, 0))
    expect([index.lastPosition(), index.positionOf('b1')]).toEqual([1, undefined])
  })

  it('is not changed by repeated messages', () => {
    const index = indexOf(frameOf('a', 1, 2, 0), frameOf('a', 2, 2, 0))
    index.apply({ sequence: 1, subject: route, frame: frameOf('a', 1, 2, 0) })
    expect(index.lastPosition()).toBe(2)
  })

  it('drops events below a purge notice, and keeps the positions of the others', () => {
    const index = indexOf(frameOf('a', 1, 2, 0), frameOf('a', 2, 2, 0), {
      ...frameOf('p', 1, 1, 2),
      event: undefined,
      purgedUpTo: 1,
    })
    expect([index.firstPosition(), index.lastPosition(), index.sequenceOf(2)]).toEqual([2, 2, 2])
    expect([index.positionOf('a1'), index.positionOf('a2')]).toEqual([undefined, 2])
    expect(index.lastOfSubject(route)).toBe(2)
  })

  it('refuses a stream whose positions start again', () => {
    const index = indexOf(frameOf('a', 1, 1, 0), frameOf('b', 1, 1, 1))
    const replaced = { sequence: 9, subject: route, frame: frameOf('c', 1, 1, 0) }
    expect(() => index.apply(replaced)).toThrow(expect.objectContaining({ code: 'corrupt' }))
  })

  it('continues from a captured state as if it had applied all messages', () => {
    const purge = { batch: 'p', index: 1, count: 1, base: 4, event: undefined, purgedUpTo: 2 }
    const messages = [
      frameOf('a', 1, 2, 0),
      frameOf('a', 2, 2, 0),
      frameOf('b', 1, 3, 2),
      undefined,
      frameOf('c', 1, 2, 2),
      frameOf('c', 2, 2, 2),
      purge,
      frameOf('d', 1, 2, 4),
      frameOf('d', 2, 2, 4),
    ].map((frame, at) => ({ sequence: at + 1, subject: `${route}${at}`, frame }))
    const expected = new StreamIndex()
    expected.startAt(0)
    for (const message of messages) expected.apply(message)
    for (let cut = 0; cut <= messages.length; cut++) {
      const before = new StreamIndex()
      before.startAt(0)
      for (const message of messages.slice(0, cut)) before.apply(message)
      const index = new StreamIndex()
      index.restore(JSON.parse(JSON.stringify(before.toState())))
      for (const message of messages.slice(index.sequence)) index.apply(message)
      expect(index.toState(), `cut after ${cut}`).toEqual(expected.toState())
      expect([index.sequenceOf(5), index.positionOf('d2')]).toEqual([8, 6])
    }
  })

  it('has no state to capture while its positions are unknown', () => {
    expect(new StreamIndex().toState()).toBeUndefined()
  })
})
