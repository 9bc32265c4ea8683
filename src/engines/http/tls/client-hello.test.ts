import { describe, expect, it } from 'vitest'
import fc from '../../../../test/support/fast-check.ts'
import { ClientHelloReader } from './client-hello.ts'

const readClientHello = (bytes: Buffer) => new ClientHelloReader().push(bytes)
const u16 = (value: number) => [value >> 8, value & 255]
const vector = (size: 1 | 2, bytes: readonly number[]) =>
  size === 1 ? [bytes.length, ...bytes] : [...u16(bytes.length), ...bytes]
const extension = (type: number, content: readonly number[]) => [
  ...u16(type),
  ...vector(2, content),
]
const nameEntry = (type: number, name: string) => [type, ...vector(2, [...Buffer.from(name)])]
const serverName = (...entries: number[][]) => extension(0, vector(2, entries.flat()))

/** A hello in one record, or in several with so many bytes each. */
function hello(extensions: readonly number[] | undefined, fragment = 16_384): Buffer {
  const body = [
    ...[3, 3, ...new Array<number>(32).fill(7)],
    ...vector(1, new Array<number>(32).fill(9)),
    ...vector(2, [0x13, 0x01]),
    ...vector(1, [0]),
    ...(extensions === undefined ? [] : vector(2, extensions)),
  ]
  const message = [1, 0, ...u16(body.length), ...body]
  const records: number[] = []
  for (let at = 0; at < message.length; at += fragment) {
    records.push(22, 3, 1, ...vector(2, message.slice(at, at + fragment)))
  }
  return Buffer.from(records)
}

const named = [...extension(10, [0, 2, 0, 29]), ...serverName(nameEntry(0, 'a.example.com'))]

describe('readClientHello', () => {
  it('reads the server name from one record or from many', () => {
    for (const fragment of [16_384, 50, 3, 1]) {
      expect(readClientHello(hello(named, fragment))).toEqual({
        serverName: 'a.example.com',
        tickets: [],
      })
    }
  })

  it('returns no server name if there is none', () => {
    const unnamed = { serverName: undefined, tickets: [] }
    expect(readClientHello(hello(undefined))).toEqual(unnamed)
    expect(readClientHello(hello(extension(10, [0, 2, 0, 29])))).toEqual(unnamed)
    const other = serverName(nameEntry(1, 'ignored'))
    expect(readClientHello(hello(other))).toEqual(unnamed)
  })

  it('returns the key names of TLS 1.2 and 1.3 session tickets', () => {
    const ticket = (letter: string) => [...Buffer.from(letter.repeat(40))]
    const shared = [...vector(2, ticket('c')), 0, 0, 0, 9, ...vector(2, ticket('d')), 0, 0, 0, 9]
    const extensions = [
      ...named,
      ...extension(35, ticket('b')),
      ...extension(41, vector(2, shared)),
    ]
    const tickets = ['b', 'c', 'd'].map((letter) => letter.repeat(16))
    expect(readClientHello(hello(extensions))).toEqual({ serverName: 'a.example.com', tickets })
    const empty = extension(35, [])
    expect(readClientHello(hello(empty))).toEqual({ serverName: undefined, tickets: [''] })
    expect(readClientHello(hello(extension(41, vector(2, [0, 9, 1]))))).toBe('malformed')
  })

  it('returns incomplete for a truncated message, and ignores bytes after a complete one', () => {
    const whole = hello(named, 40)
    for (let length = 0; length < whole.length; length++) {
      expect(readClientHello(whole.subarray(0, length)), `${length} bytes`).toBe('incomplete')
    }
    const followed = Buffer.concat([whole, Buffer.from([20, 3, 3, 0, 1, 1])])
    expect(readClientHello(followed)).toEqual({ serverName: 'a.example.com', tickets: [] })
  })

  it('returns malformed for other protocols, oversized messages and wrong lengths', () => {
    const bad: Buffer[] = [
      Buffer.from('GET / HTTP/1.1\r\n'),
      Buffer.from([22, 2, 0, 0, 4, 1, 0, 0, 0]),
      Buffer.from([22, 3, 1, 0, 0]),
      Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]),
      Buffer.from([22, 3, 1, 0, 4, 1, 1, 0, 0]),
      Buffer.from([22, 3, 1, 0, 4, 1, 0, 0, 0]),
      hello([0, 0, 0, 9, 0]),
      hello(extension(0, [0, 9, 0])),
      Buffer.concat([hello(named, 40).subarray(0, 45), Buffer.alloc(40_000)]),
    ]
    for (const bytes of bad) {
      expect(readClientHello(bytes), bytes.toString('hex', 0, 40)).toBe('malformed')
    }
  })

  it('returns malformed for two server names, because the server could use the other one', () => {
    const [a, b] = [nameEntry(0, 'a.example.com'), nameEntry(0, 'b.example.com')]
    for (const extensions of [
      [...serverName(a), ...serverName(b)],
      [...serverName(a), ...extension(10, [0, 2, 0, 29]), ...serverName(a)],
      [...extension(0, []), ...serverName(a)],
      serverName(a, b),
      extension(0, [...vector(2, a), ...vector(2, b)]),
    ]) {
      expect(readClientHello(hello(extensions))).toBe('malformed')
    }
  })

  it('never throws on random bytes', () => {
    const start = hello(named)
    fc.assert(
      fc.property(fc.nat(start.length - 1), fc.uint8Array({ maxLength: 80 }), (at, noise) => {
        const bytes = Buffer.from(start)
        bytes.set(noise.subarray(0, bytes.length - at), at)
        expect(() => readClientHello(bytes)).not.toThrow()
      }),
      { numRuns: 2_000 },
    )
  })
})
