import assert from 'node:assert/strict'
import { UnreadBytes } from '../../../src/engines/http/bytes/unread-bytes.ts'
import { type FrameHandler, FrameReader } from '../../../src/engines/http/http2/frame-reader.ts'
import { ConnectionError } from '../../../src/engines/http/http2/frames.ts'
import { cuts } from '../support/pieces.ts'
import type { Random } from '../support/random.ts'
import { defineTarget } from '../support/target.ts'

const limits = { maxFrameSize: 400, maxBlockSize: 300, maxContinuations: 3 }

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Sizes that frames of a type must have, most of the time. */
const sizes: Readonly<Record<number, number>> = { 2: 5, 3: 4, 4: 6, 6: 8, 8: 4 }

function generate(random: Random): Buffer {
  const frames = Array.from({ length: 1 + random.length(8) }, () => {
    const type = random.pick([0, 0, 0, 1, 1, 2, 3, 4, 6, 7, 8, 9, 9, 20])
    const flags = random.pick([0, 1, 4, 5, 8, 9, 12, 32, 44])
    const stream = random.pick(type === 4 || type === 6 || type === 7 ? [0, 0, 0, 1] : [1, 1, 3, 0])
    const payload = Buffer.from(random.bytes(sizes[type] ?? random.length(120)))
    if ((flags & 8) !== 0 && payload.length > 0) payload[0] = random.below(payload.length + 1)
    return frame(type, flags, stream, payload)
  })
  const all = Buffer.concat(frames)
  if (random.oneIn(4)) all[random.below(all.length)] = random.integer()
  return random.oneIn(4) ? all.subarray(0, random.below(all.length)) : all
}

/** Records the calls of the frame reader in order; joins data that arrives in pieces. */
class Told implements FrameHandler {
  readonly calls: unknown[] = []
  #data = ''

  #tell(...call: unknown[]): void {
    if (this.#data !== '') this.calls.push(['data', this.#data])
    this.#data = ''
    this.calls.push(call)
  }

  onData(_stream: number, bytes: Buffer, start: number, end: number): void {
    this.#data += bytes.toString('hex', start, end)
  }

  onHeaders(stream: number, bytes: Buffer, start: number, end: number, ...more: unknown[]): void {
    this.#tell('headers', stream, bytes.toString('hex', start, end), ...more)
  }

  onDataFrame = this.#tell.bind(this, 'data frame')
  onDataEnd = this.#tell.bind(this, 'data end')
  onPriority = this.#tell.bind(this, 'priority')
  onBadFrame = this.#tell.bind(this, 'bad frame')
  onReset = this.#tell.bind(this, 'reset')
  onSetting = this.#tell.bind(this, 'setting')
  onSettingsEnd = this.#tell.bind(this, 'settings end')
  onSettingsAck = this.#tell.bind(this, 'settings ack')
  onPing = this.#tell.bind(this, 'ping')
  onGoaway = this.#tell.bind(this, 'goaway')
  onWindowUpdate = this.#tell.bind(this, 'window update')
  onUnknown = this.#tell.bind(this, 'unknown')
}

function read(pieces: readonly Buffer[]): { calls: unknown[]; end: string | number } {
  const told = new Told()
  const reader = new FrameReader(told, limits)
  const unread = new UnreadBytes()
  try {
    for (const piece of pieces) {
      unread.add(piece, 0, piece.length)
      for (let at = -1; at !== unread.start && unread.size > 0; ) {
        at = unread.start
        unread.start = reader.read(unread.bytes, at, unread.end)
        assert.ok(unread.start <= unread.end)
      }
      unread.keep(piece)
      piece.fill(0x21)
    }
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    return { calls: told.calls, end: error.message }
  }
  return { calls: told.calls, end: unread.size }
}

export default defineTarget({
  about: 'frames of HTTP/2 are told alike, or refused alike, however the bytes are cut',
  generate,
  start: () => ({
    check(input) {
      const [whole, ...others] = cuts(input).map(read)
      for (const other of others) assert.deepEqual(other, whole)
    },
  }),
})
