import assert from 'node:assert/strict'
import { frameMessage, MessageReader } from '../../../src/gateway/proxy/callouts/grpc-framing.ts'
import { cuts } from '../support/pieces.ts'
import type { Random } from '../support/random.ts'
import { defineTarget } from '../support/target.ts'

function generate(random: Random): Buffer {
  const frames = Array.from({ length: 1 + random.length(6) }, () =>
    frameMessage(random.bytes(random.length(40))),
  )
  const all = Buffer.concat(frames)
  if (random.oneIn(3)) all[random.below(all.length)] = random.integer()
  return random.oneIn(3) ? all.subarray(0, random.below(all.length)) : all
}

interface Reading {
  readonly messages: readonly string[]
  /** The error, or whether a message has begun. */
  readonly end: string | boolean
}

function read(pieces: readonly Buffer[]): Reading {
  const reader = new MessageReader()
  const messages: string[] = []
  const found: Uint8Array[] = []
  for (const piece of pieces) {
    const read = reader.read(piece)
    if (typeof read === 'string') return { messages: [], end: read }
    found.push(...read)
    piece.fill(0x21)
  }
  for (const message of found) messages.push(Buffer.from(message).toString('hex'))
  return { messages, end: reader.isInside }
}

/** Prefix by prefix, on bytes that have come whole. */
function reference(input: Buffer): Reading {
  const messages: string[] = []
  let at = 0
  while (at + 5 <= input.length) {
    const length = input.readUInt32BE(at + 1)
    if (input[at] !== 0)
      return { messages: [], end: 'a message is compressed, which was not offered' }
    if (length > 2 ** 24) return { messages: [], end: 'a message has more than 16777216 bytes' }
    if (at + 5 + length > input.length) break
    messages.push(input.toString('hex', at + 5, at + 5 + length))
    at += 5 + length
  }
  return { messages, end: at < input.length }
}

export default defineTarget({
  about: 'gRPC messages are what their prefixes say, however the bytes are cut',
  generate,
  start: () => ({
    check(input) {
      const expected = reference(input)
      for (const pieces of cuts(input)) assert.deepEqual(read(pieces), expected)
    },
  }),
})
