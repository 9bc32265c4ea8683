import { describe, expect, it } from 'vitest'
import { WebSocketTexts } from './websocket.ts'

/** A frame with a payload; `mask`: as clients send it. */
function frame(opcode: number, payload: Buffer, isFinal = true, mask?: Buffer): Buffer {
  const { length } = payload
  const bit = mask === undefined ? 0 : 0x80
  const first = (isFinal ? 0x80 : 0) | opcode
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = first
  head[1] = bit | (length < 126 ? length : length < 65_536 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  const body = Buffer.from(payload)
  if (mask !== undefined)
    for (const [at, byte] of body.entries()) body[at] = byte ^ (mask[at & 3] ?? 0)
  return Buffer.concat([head, mask ?? Buffer.alloc(0), body])
}

const text = (value: string) => Buffer.from(value)

function read(bytes: Buffer, cut: number, limit = 100_000): string[] {
  const texts: string[] = []
  const reader = new WebSocketTexts((one) => texts.push(one), limit)
  for (let at = 0; at < bytes.length; at += cut) {
    reader.push(bytes, at, Math.min(bytes.length, at + cut))
  }
  return texts
}

describe('text messages of a WebSocket', () => {
  const long = 'ä'.repeat(40_000)
  const all = Buffer.concat([
    frame(1, text('')),
    frame(1, text('one')),
    frame(2, text('bytes')),
    frame(1, text('two, '), false),
    frame(9, text('ping')),
    frame(0, text('in parts'), true),
    frame(1, text('masked'), true, Buffer.from([1, 2, 3, 4])),
    frame(2, text('begun'), false),
    frame(0, text('ended')),
    frame(1, text(long)),
    frame(1, text('x'.repeat(300))),
  ])

  it.each([1, 2, 7, 1_000, 1_000_000])('are complete if bytes arrive %i at a time', (cut) => {
    const expected = ['', 'one', 'two, in parts', 'masked', long, 'x'.repeat(300)]
    expect(read(all, cut)).toEqual(expected)
  })

  it('are skipped if they are too long', () => {
    expect(read(all, 64, 200)).toEqual(['', 'one', 'two, in parts', 'masked'])
  })
})
