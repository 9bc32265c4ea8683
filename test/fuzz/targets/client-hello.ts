import assert from 'node:assert/strict'
import { ClientHelloReader } from '../../../src/engines/http/tls/client-hello.ts'
import { cuts } from '../support/pieces.ts'
import { defineTarget } from '../support/target.ts'

/** As many bytes as a reader waits for at most. */
const mostBytes = 32_768

const u16 = (value: number) => [value >> 8, value & 255]
const vector = (bytes: readonly number[]) => [...u16(bytes.length), ...bytes]
const extension = (type: number, content: readonly number[]) => [...u16(type), ...vector(content)]

function hello(fragment: number): Buffer {
  const name = [...Buffer.from('a.example.com')]
  const extensions = [
    ...extension(0, vector([0, ...vector(name)])),
    ...extension(35, [...Buffer.from('t'.repeat(40))]),
    ...extension(41, vector([...vector([...Buffer.from('i'.repeat(40))]), 0, 0, 0, 9])),
  ]
  const random = new Array<number>(32).fill(7)
  const body = [3, 3, ...random, 0, ...vector([0x13, 0x01]), 1, 0, ...vector(extensions)]
  const message = [1, 0, ...u16(body.length), ...body]
  const records: number[] = []
  for (let at = 0; at < message.length; at += fragment) {
    records.push(22, 3, 1, ...vector(message.slice(at, at + fragment)))
  }
  return Buffer.from(records)
}

/** The first answer that is not `incomplete`. */
function read(pieces: readonly Buffer[]): unknown {
  const reader = new ClientHelloReader()
  for (const piece of pieces) {
    const answer = reader.push(piece)
    if (answer !== 'incomplete') return answer
    piece.fill(0x21)
  }
  return 'incomplete'
}

export default defineTarget({
  about: 'what is said of a ClientHello is the same however the bytes are cut',
  samples: [hello(16_384), hello(50), hello(1)],
  words: [Buffer.from([22, 3, 1]), Buffer.from([0, 0]), Buffer.from([0xff, 0xff])],
  start: () => ({
    check(input) {
      const [whole, ...others] = cuts(input.subarray(0, mostBytes)).map(read)
      for (const other of others) assert.deepEqual(other, whole)
    },
  }),
})
