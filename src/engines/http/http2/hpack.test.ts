import { describe, expect, it } from 'vitest'
import fc from '../../../../test/support/fast-check.ts'
import { ConnectionError } from './frames.ts'
import type { HeaderEntry } from './header-entry.ts'
import { HpackDecoder } from './hpack-decoder.ts'
import { HpackEncoder } from './hpack-encoder.ts'
import { decodeHuffman, encodeHuffman, huffmanLength } from './huffman.ts'

/** A decoder with the fields of each block as text. */
class Reader {
  readonly decoder: HpackDecoder
  constructor(tableSize?: number) {
    this.decoder = new HpackDecoder(tableSize)
  }
  read(block: Buffer): string[] {
    const fields: string[] = []
    const onField = ({ name, value }: HeaderEntry, isSensitive: boolean) =>
      fields.push(`${name}: ${value}${isSensitive ? ' (never indexed)' : ''}`)
    this.decoder.decode(block, 0, block.length, { onField })
    return fields
  }
}

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const latin1 = (text: string) => Buffer.from(text, 'latin1')

interface Example {
  title: string
  tableSize?: number
  blocks: readonly { hex: string; fields: readonly string[]; table: number }[]
}

const get = [':method: GET', ':scheme: http', ':path: /']
const requests = [
  [...get, ':authority: www.example.com'],
  [...get, ':authority: www.example.com', 'cache-control: no-cache'],
  [
    ':method: GET',
    ':scheme: https',
    ':path: /index.html',
    ':authority: www.example.com',
    'custom-key: custom-value',
  ],
]
const location = 'location: https://www.example.com'
const first = 'date: Mon, 21 Oct 2013 20:13:21 GMT'
const responses = [
  [':status: 302', 'cache-control: private', first, location],
  [':status: 307', 'cache-control: private', first, location],
  [
    ':status: 200',
    'cache-control: private',
    'date: Mon, 21 Oct 2013 20:13:22 GMT',
    location,
    'content-encoding: gzip',
    'set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
  ],
]

const sequence = (
  fields: readonly (readonly string[])[],
  tables: readonly number[],
  blocks: readonly string[],
) => blocks.map((hex, at) => ({ hex, fields: fields[at] ?? [], table: tables[at] ?? 0 }))

const examples: readonly Example[] = [
  {
    title: 'C.2.1 literal field with indexing',
    blocks: [
      {
        hex: '400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572',
        fields: ['custom-key: custom-header'],
        table: 55,
      },
    ],
  },
  {
    title: 'C.2.2 literal field without indexing',
    blocks: [
      { hex: '040c 2f73 616d 706c 652f 7061 7468', fields: [':path: /sample/path'], table: 0 },
    ],
  },
  {
    title: 'C.2.3 literal field never indexed',
    blocks: [
      {
        hex: '1008 7061 7373 776f 7264 0673 6563 7265 74',
        fields: ['password: secret (never indexed)'],
        table: 0,
      },
    ],
  },
  { title: 'C.2.4 indexed field', blocks: [{ hex: '82', fields: [':method: GET'], table: 0 }] },
  {
    title: 'C.3 requests without Huffman coding',
    blocks: sequence(
      requests,
      [57, 110, 164],
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
    ),
  },
  {
    title: 'C.4 requests with Huffman coding',
    blocks: sequence(
      requests,
      [57, 110, 164],
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
    ),
  },
  {
    title: 'C.5 responses without Huffman coding, with eviction',
    tableSize: 256,
    blocks: sequence(
      responses,
      [222, 222, 215],
      [
        `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a
       3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
        '4803 3330 37c1 c0bf',
        `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
       677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
       553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
      ],
    ),
  },
  {
    title: 'C.6 responses with Huffman coding, with eviction',
    tableSize: 256,
    blocks: sequence(
      responses,
      [222, 222, 215],
      [
        `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
       919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
        '4883 640e ffc1 c0bf',
        `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
       821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
       4ee5 b106 3d50 07`,
      ],
    ),
  },
]

describe('the HPACK decoder reads the examples of RFC 7541 appendix C', () => {
  it.each(examples)('$title', ({ blocks, tableSize }) => {
    const reader = new Reader(tableSize)
    for (const { hex: block, fields, table } of blocks) {
      expect(reader.read(hex(block.replaceAll(/\s/g, '')))).toEqual(fields)
      expect(reader.decoder.tableSize).toBe(table)
    }
  })
})

describe('the HPACK decoder refuses malformed blocks', () => {
  it.each([
    ['index 0', '80'],
    ['an index beyond the tables', 'be'],
    ['an index beyond the tables, for a name', '7f00 0161'],
    ['an integer that does not end', 'ff'],
    ['an integer that is too large', 'ffff ffff ffff ffff 7f'],
    ['a string that is longer than the block', '0003 6162'],
    ['a name without its value', '0001 61'],
    ['a table above the announced size', '3fe2 1f'],
    ['a table size update after a field', '8220'],
    ['EOS in a string', '0001 6184 ffff ffff'],
    ['padding of a string longer than 7 bits', '0001 6182 1fff'],
    ['padding of a string that is not all ones', '0001 6181 18'],
  ])('%s', (_title, block) => {
    expect(() => new Reader().read(hex(block))).toThrow('broken header block')
  })

  it('and never throws on random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          return new Reader().read(Buffer.from(bytes)).length <= bytes.length
        } catch (thrown) {
          return thrown instanceof ConnectionError
        }
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('the Huffman code of HPACK', () => {
  it('decodes what it has encoded', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = Buffer.from(bytes).toString('latin1')
        const coded = latin1(encodeHuffman(text))
        const into = Buffer.alloc(coded.length * 2 + 8)
        const length = decodeHuffman(coded, 0, coded.length, into)
        expect(into.toString('latin1', 0, length)).toBe(text)
        expect(coded.length).toBe(huffmanLength(text))
      }),
      { numRuns: 500 },
    )
  })
})

describe('the HPACK encoder', () => {
  const head = (lines: readonly string[]) =>
    `HTTP/1.1 200 OK\r\n${lines.map((line) => `${line}\r\n`).join('')}`

  it('omits fields that only HTTP/1.1 has, and makes names lower case', () => {
    const block = new HpackEncoder().response(
      head(['Content-Type: a/b', 'Connection: close', 'Transfer-Encoding: chunked', 'X-A:  1 ']),
    )
    expect(new Reader().read(latin1(block))).toEqual([
      ':status: 200',
      'content-type: a/b',
      'x-a: 1',
    ])
  })

  it('writes pseudo-header fields first, and omits Host', () => {
    const text = 'GET /a?b HTTP/1.1\r\nx: y\r\nHost: h.example\r\nte: trailers\r\n\r\n'
    expect(new Reader().read(latin1(new HpackEncoder().request(text, 'https')))).toEqual([
      ':method: GET',
      ':scheme: https',
      ':authority: h.example',
      ':path: /a?b',
      'x: y',
      'te: trailers',
    ])
  })

  it('marks credentials as never indexed', () => {
    const block = new HpackEncoder().response(head(['set-cookie: a=b', 'authorization: c']))
    expect(new Reader().read(latin1(block))).toEqual([
      ':status: 200',
      'set-cookie: a=b (never indexed)',
      'authorization: c (never indexed)',
    ])
  })

  it('sends a repeated field as one byte', () => {
    const encoder = new HpackEncoder()
    const text = head(['content-type: application/json', 'server: x'])
    expect(encoder.response(text).length).toBeGreaterThan(10)
    expect(encoder.response(text).length).toBe(3)
  })

  it('stays in sync with a decoder over random fields and table sizes', () => {
    const line = fc.tuple(
      fc.constantFrom('content-type', 'server', 'vary', 'x-other', 'set-cookie'),
      fc.stringMatching(/^[a-z0-9]{0,60}$/),
    )
    const step = fc.record({
      lines: fc.array(line, { maxLength: 8 }),
      size: fc.option(fc.constantFrom(0, 60, 100, 300, 1_000, 4_096, 9_000), { nil: undefined }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const encoder = new HpackEncoder()
        const reader = new Reader()
        for (const { lines, size } of steps) {
          if (size !== undefined) encoder.resize(size)
          const fields = lines.map(([name, value]) => `${name}: ${value}`)
          const read = reader.read(latin1(encoder.response(head(fields))))
          const found = read?.map((field) => field.replace(' (never indexed)', ''))
          expect(found).toEqual([':status: 200', ...fields])
        }
      }),
      { numRuns: 300 },
    )
  })
})
