import assert from 'node:assert/strict'
import { readClientHello } from '../../../src/proxy/engine/tls/client-hello.ts'
import { defineTarget } from '../support/target.ts'

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

export default defineTarget({
  about: 'what is said of a ClientHello never changes once it is said, however many bytes follow',
  samples: [hello(16_384), hello(50), hello(1)],
  words: [Buffer.from([22, 3, 1]), Buffer.from([0, 0]), Buffer.from([0xff, 0xff])],
  start: () => ({
    check(input) {
      let answer: ReturnType<typeof readClientHello> = 'incomplete'
      for (let end = 0; end <= input.length; end += input.length > 4096 ? 97 : 1) {
        const now = readClientHello(input.subarray(0, end))
        if (answer !== 'incomplete') assert.deepEqual(now, answer, `with ${end} bytes`)
        answer = now
      }
    },
  }),
})
