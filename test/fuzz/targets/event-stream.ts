import assert from 'node:assert/strict'
import { crc32 } from 'node:zlib'
import type { StreamEvent } from '../../../src/engines/messages/chat.ts'
import { EventStreamDecoder } from '../../../src/engines/messages/framing/event-stream.ts'
import { LlmError } from '../../../src/engines/messages/llm-error.ts'
import { cuts } from '../support/pieces.ts'
import type { Random } from '../support/random.ts'
import { defineTarget } from '../support/target.ts'

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

function frame(headers: Buffer, payload: Buffer): Buffer {
  const prelude = Buffer.concat([u32(16 + headers.length + payload.length), u32(headers.length)])
  const all = Buffer.concat([prelude, u32(crc32(prelude)), headers, payload])
  return Buffer.concat([all, u32(crc32(all))])
}

function header(name: string, value: Buffer, type = 7): Buffer {
  const length = Buffer.from([value.length >> 8, value.length & 255])
  return Buffer.concat([
    Buffer.from([name.length]),
    Buffer.from(name),
    Buffer.from([type]),
    length,
    value,
  ])
}

/** Frames with sound checksums, around headers and payloads that need not be sound. */
function generate(random: Random): Buffer {
  const frames = Array.from({ length: 1 + random.length(4) }, () => {
    const headers = Array.from({ length: random.length(4) }, () =>
      header(
        random.pick([':event-type', ':message-type', 'x']),
        random.bytes(random.length(20)),
        random.oneIn(4) ? random.below(12) : 7,
      ),
    )
    return frame(Buffer.concat(headers), random.bytes(random.length(300)))
  })
  const all = Buffer.concat(frames)
  if (random.oneIn(3)) all[random.below(all.length)] = random.integer()
  return random.oneIn(3) ? all.subarray(0, random.below(all.length)) : all
}

function read(pieces: readonly Buffer[]): { events: StreamEvent[]; end: string | boolean } {
  const decoder = new EventStreamDecoder(1000)
  const events: StreamEvent[] = []
  try {
    for (const piece of pieces) {
      decoder.push(piece, (event) => events.push(event))
      piece.fill(0x21)
    }
    return { events, end: decoder.isInside }
  } catch (error) {
    if (!(error instanceof LlmError)) throw error
    return { events, end: error.message }
  }
}

export default defineTarget({
  about: 'frames of vendorF give the same events, or the same refusal, however they are cut',
  generate,
  start: () => ({
    check(input) {
      const [whole, ...others] = cuts(input).map(read)
      for (const other of others) assert.deepEqual(other, whole)
    },
  }),
})
