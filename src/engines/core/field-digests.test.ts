import { describe, expect, it } from 'vitest'
import { FieldDigests } from './field-digests.ts'
import { createIoCore } from './io-core.ts'

const mask = (1n << 64n) - 1n
const rotated = (x: bigint, by: bigint) => ((x << by) | (x >> (64n - by))) & mask

/** SipHash-1-3 as its authors describe it. */
function sipHash(key: Uint8Array, text: Buffer): string {
  const k0 = Buffer.from(key).readBigUInt64LE(0)
  const k1 = Buffer.from(key).readBigUInt64LE(8)
  let [a, b, c, d] = [
    k0 ^ 0x736f6d6570736575n,
    k1 ^ 0x646f72616e646f6dn,
    k0 ^ 0x6c7967656e657261n,
    k1 ^ 0x7465646279746573n,
  ] as [bigint, bigint, bigint, bigint]
  const round = () => {
    a = (a + b) & mask
    b = rotated(b, 13n) ^ a
    a = rotated(a, 32n)
    c = (c + d) & mask
    d = rotated(d, 16n) ^ c
    a = (a + d) & mask
    d = rotated(d, 21n) ^ a
    c = (c + b) & mask
    b = rotated(b, 17n) ^ c
    c = rotated(c, 32n)
  }
  const padded = Buffer.alloc((Math.floor(text.length / 8) + 1) * 8)
  text.copy(padded)
  padded[padded.length - 1] = text.length & 0xff
  for (let at = 0; at < padded.length; at += 8) {
    const word = padded.readBigUInt64LE(at)
    d ^= word
    round()
    a ^= word
  }
  c ^= 0xffn
  for (let times = 0; times < 3; times++) round()
  const result = Buffer.alloc(8)
  result.writeBigUInt64LE(a ^ b ^ c ^ d)
  return result.toString('hex')
}

const key = Uint8Array.from({ length: 16 }, (_, at) => at)

function digests(fields: readonly (readonly [name: string, value: string])[]) {
  const core = createIoCore({ memoryPages: 64 })
  const digester = new FieldDigests(core, key)
  const start = 'GET / HTTP/1.1\r\n'
  let text = start
  const spans = new Int32Array(fields.length * 5)
  for (const [at, [name, value]] of fields.entries()) {
    const from = text.length
    text += `${name}: ${value}\r\n`
    spans.set([from, from + name.length, from + name.length + 2, text.length - 2, 0], at * 5)
  }
  // Not at the start of the buffer, as for a head behind another one.
  const bytes = Buffer.from(`x${text}\r\n`, 'latin1')
  digester.load(bytes, 1, spans, fields.length)
  digester.digestEach(spans)
  return Array.from({ length: digester.count }, (_, at) => {
    const name = Buffer.alloc(8)
    name.writeInt32LE(digester.name(at, 0), 0)
    name.writeInt32LE(digester.name(at, 1), 4)
    const value = Buffer.from(core.bytes.subarray(digester.valueAt(at), digester.valueAt(at) + 8))
    return [name.toString('hex'), value.toString('hex')]
  })
}

describe('digests of header fields', () => {
  it('are SipHash-1-3 of the lower-case name and of the value', () => {
    // The published vector of an empty text with the key 00 01 … 0f.
    expect(sipHash(key, Buffer.alloc(0))).toBe('dcc40f055801acab')
    const fields = [
      ['X-Team', ''],
      ['a', 'b'],
      ['X-Forwarded-Proto', '12345678'],
      ['content-type', 'application/json; charset=\xe4@[`{Z'],
      ['Z@[', 'x'.repeat(1000)],
    ] as const
    expect(digests(fields)).toEqual(
      fields.map(([name, value]) => [
        sipHash(key, Buffer.from(name.toLowerCase(), 'latin1')),
        sipHash(key, Buffer.from(value, 'latin1')),
      ]),
    )
  })

  it('leave out the fields of a head that are too many or too long', () => {
    expect(digests(Array.from({ length: 200 }, () => ['a', 'b']))).toHaveLength(128)
    expect(
      digests([
        ['a', 'b'],
        ['long', 'x'.repeat(20_000)],
      ]),
    ).toHaveLength(1)
  })
})
