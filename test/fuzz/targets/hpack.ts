import assert from 'node:assert/strict'
import { ConnectionError } from '../../../src/engines/http/http2/frames.ts'
import type { HeaderEntry } from '../../../src/engines/http/http2/header-entry.ts'
import { type FieldSink, HpackDecoder } from '../../../src/engines/http/http2/hpack-decoder.ts'
import { defineTarget } from '../support/target.ts'

const tableLimit = 256

/** Decodes twice with one table, as two blocks of one connection. */
function decode(bytes: Buffer): { fields: string[]; answers: boolean[]; tableSize: number } {
  const decoder = new HpackDecoder(tableLimit)
  const fields: string[] = []
  const sink = {
    onField: ({ name, value }: HeaderEntry, isSensitive: boolean) =>
      void fields.push(`${name}\0${value}\0${isSensitive}`),
  }
  const answers: boolean[] = []
  for (let round = 0; round < 2 && answers.at(-1) !== false; round++) {
    answers.push(isDecoded(decoder, bytes, sink))
    assert.ok(decoder.tableSize <= tableLimit, `the table has ${decoder.tableSize} octets`)
  }
  return { fields, answers, tableSize: decoder.tableSize }
}

function isDecoded(decoder: HpackDecoder, bytes: Buffer, sink: FieldSink): boolean {
  try {
    decoder.decode(bytes, 0, bytes.length, sink)
    return true
  } catch (thrown) {
    assert.ok(thrown instanceof ConnectionError)
    return false
  }
}

export default defineTarget({
  about: 'HPACK blocks decode alike wherever they lie in memory, and keep the limit of the table',
  samples: [
    Buffer.from('828684410f7777772e6578616d706c652e636f6d', 'hex'),
    Buffer.from('828684418cf1e3c2e5f23a6ba0ab90f4ff', 'hex'),
    Buffer.from(
      '3f e1 1f 82 87 85 bf 40 0a 63 75 73 74 6f 6d 2d 6b 65 79 0c 63 75 73 74 6f 6d 2d 76 61 6c 75 65'.replaceAll(
        ' ',
        '',
      ),
      'hex',
    ),
    Buffer.from('488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff', 'hex'),
  ],
  words: [
    Buffer.from([0x3f, 0xff, 0xff, 0xff, 0x7f]),
    Buffer.from([0x20]),
    Buffer.from([0xbe]),
    Buffer.from([0x40, 0x81]),
  ],
  start: () => ({
    check(input) {
      const first = decode(input)
      const elsewhere = Buffer.concat([Buffer.alloc(7, 0xff), input, Buffer.alloc(9, 0x55)])
      assert.deepEqual(decode(elsewhere.subarray(7, 7 + input.length)), first)
      assert.ok(first.fields.length <= 2 * input.length)
    },
  }),
})
