import assert from 'node:assert/strict'
import { WebSocketTexts } from '../../../src/engines/messages/framing/websocket.ts'
import { cuts } from '../support/pieces.ts'
import type { Random } from '../support/random.ts'
import { defineTarget } from '../support/target.ts'

const textLimit = 200

function frame(random: Random, first: number, payload: Buffer): Buffer {
  const masked = random.oneIn(2) ? 0x80 : 0
  const length = payload.length
  const head = [first, masked | Math.min(length, 126)]
  if (length >= 126) head.push(length >> 8, length & 255)
  if (masked === 0) return Buffer.concat([Buffer.from(head), payload])
  const key = Buffer.from(random.bytes(4))
  const hidden = payload.map((byte, at) => byte ^ (key[at & 3] ?? 0))
  return Buffer.concat([Buffer.from(head), key, hidden])
}

/** Messages in parts, with control frames between them; sometimes broken. */
function generate(random: Random): Buffer {
  const frames = Array.from({ length: 1 + random.length(8) }, () => {
    const first = (random.oneIn(2) ? 0x80 : 0) | random.pick([0, 0, 1, 1, 2, 8, 9, 10])
    return frame(random, first, Buffer.from('é-'.repeat(random.length(100))))
  })
  const all = Buffer.concat(frames)
  if (random.oneIn(4)) all[random.below(all.length)] = random.integer()
  return all
}

function read(pieces: readonly Buffer[]): string[] {
  const texts: string[] = []
  const reader = new WebSocketTexts((text) => void texts.push(text), textLimit)
  for (const piece of pieces) {
    const behind = Buffer.concat([Buffer.from('!!!'), piece, Buffer.from('!!!')])
    reader.push(behind, 3, 3 + piece.length)
    assert.deepEqual(behind.subarray(3, 3 + piece.length), piece, 'bytes that pass were changed')
  }
  return texts
}

export default defineTarget({
  about:
    'texts of a WebSocket are read alike however the bytes are cut, and the bytes stay as they are',
  generate,
  start: () => ({
    check(input) {
      const [whole, ...others] = cuts(input).map(read)
      for (const other of others) assert.deepEqual(other, whole)
      for (const text of whole ?? []) assert.ok(text.length <= textLimit)
    },
  }),
})
