import assert from 'node:assert/strict'
import type { StreamEvent } from '../../../src/engines/messages/chat.ts'
import { PassingEvents } from '../../../src/engines/messages/response/passing-events.ts'
import { type SseEvent, SseReader } from '../../../src/engines/sse/reader.ts'
import { cuts } from '../support/pieces.ts'
import { defineTarget } from '../support/target.ts'

const eventLimit = 300
const replacement: StreamEvent = { event: undefined, data: 'other' }

/** Leaves out events with `drop`, replaces those with `change`; the others pass. */
function convert(event: StreamEvent): readonly StreamEvent[] {
  if (event.data.includes('drop')) return []
  return event.data.includes('change') ? [replacement] : [event]
}

function pass(pieces: readonly Buffer[], isFollowed: boolean, change: typeof convert): string {
  const passing = new PassingEvents(eventLimit, {})
  const out: Buffer[] = []
  const emit = (bytes: Uint8Array) => void out.push(Buffer.from(bytes))
  for (const piece of pieces) {
    passing.push(piece, change, emit)
    piece.fill(0x21)
  }
  passing.finish(isFollowed, emit)
  return Buffer.concat(out).toString('latin1')
}

/** What a client reads; empty lines between events say nothing. */
function eventsOf(text: string): SseEvent[] {
  const events: SseEvent[] = []
  const reader = new SseReader(Number.MAX_SAFE_INTEGER, 'fail')
  reader.push(Buffer.from(text, 'latin1'), (event) => void events.push(event))
  return events
}

export default defineTarget({
  about: 'events that pass, change or are left out do so alike however the bytes are cut',
  samples: [
    'data: a\n\ndata: drop\n\nevent: x\ndata: change\n\ndata: b\n\n',
    'data: a\r\n\r\nevent: x\r\ndata: drop\r\n\r\n: note\r\n\r\ndata: b\r\n\r\n',
    `data: ${'x'.repeat(400)}\n\ndata: change\rdata: b\r\rdata: left`,
  ],
  words: ['data:', 'data: drop\n\n', 'data: change\n\n', 'event: x\n', '\r', '\n', ':', '\n\n'],
  start: () => ({
    check(input) {
      for (const isFollowed of [false, true]) {
        const read = (pieces: readonly Buffer[]) => eventsOf(pass(pieces, isFollowed, convert))
        const [whole, ...others] = cuts(input).map(read)
        for (const other of others) assert.deepEqual(other, whole)
      }
      for (const pieces of cuts(input)) {
        assert.equal(
          pass(pieces, false, (event) => [event]),
          input.toString('latin1'),
        )
      }
    },
  }),
})
