import { describe, expect, it } from 'vitest'
import * as abi from '../../src/engines/core/index.ts'
import { createIoCore, type HeadRecord } from '../../src/engines/core/index.ts'
import { readCaseFiles } from './case-files.ts'

interface Expected {
  readonly [part: string]: unknown
  readonly fields?: readonly (readonly [string, string])[]
  readonly flags?: readonly string[]
}

interface HeadCase {
  readonly title: string
  readonly message: 'request' | 'response' | 'trailers'
  /** Latin-1. */
  readonly bytes: string
  readonly maxBytes?: number
  readonly maxFields?: number
  readonly expect?: Expected
  /** Name of the abi's code; for a response, of the reason. */
  readonly refused?: string
}

const core = createIoCore({ memoryPages: 64 })
const input = core.allocate(65536)
const records = new Map<number, HeadRecord>()
const constants = new Map<string, unknown>(Object.entries(abi))

function recordOf(maxFields = 100): HeadRecord {
  const record = records.get(maxFields) ?? core.createHead({ maxFields })
  records.set(maxFields, record)
  return record
}

function read(test: HeadCase, length: number, resume = 0): number {
  const head = recordOf(test.maxFields)
  const end = input + length
  const maxBytes = test.maxBytes ?? 65536
  if (test.message === 'trailers') return core.parseTrailers(head, input, end)
  return test.message === 'request'
    ? core.parseRequestHead(head, input, end, resume, maxBytes)
    : core.parseResponseHead(head, input, end, resume, maxBytes)
}

function codeOf({ message, refused }: HeadCase): number {
  const code = constants.get(refused ?? '') as number
  return message === 'response' ? abi.ERROR_RESPONSE - (-code % 100) : code
}

function flagNames(flags: number): string[] {
  return [...constants]
    .filter(([name, bit]) => name.startsWith('FLAG_') && (flags & (bit as number)) !== 0)
    .map(([name]) => name.slice('FLAG_'.length))
    .sort()
}

/** The record as plain data. */
function describeHead(head: HeadRecord, length: number): Expected {
  const indexes = Array.from({ length: head.fieldCount }, (_, index) => index)
  const text = (span: Parameters<HeadRecord['text']>[0]) => head.text(span) ?? null
  return {
    method: text(abi.HEAD_METHOD),
    target: text(abi.HEAD_TARGET),
    path: text(abi.HEAD_PATH),
    query: text(abi.HEAD_QUERY),
    authority: text(abi.HEAD_AUTHORITY),
    host: text(abi.HEAD_HOST),
    upgrade: text(abi.HEAD_UPGRADE),
    reason: text(abi.HEAD_REASON),
    methodId: head.methodId,
    status: head.status,
    minor: head.minor,
    port: head.port,
    scheme: head.scheme,
    contentLength: head.contentLength,
    hostField: head.hostField,
    flags: flagNames(head.flags),
    fields: indexes.map((index) => [head.name(index), head.value(index)] as const),
    hops: indexes.filter((index) => head.isHopByHop(index)),
    rest: core.bytes.toString('latin1', head.end, input + length),
  }
}

function check(test: HeadCase): void {
  const actual = describeHead(recordOf(test.maxFields), test.bytes.length)
  const expected = { ...test.expect }
  if (test.expect?.flags) expected.flags = [...test.expect.flags].sort()
  expect(actual).toMatchObject(expected)
}

function place(test: HeadCase): void {
  // Bytes after the input must not matter, so the buffer there is filled with field bytes.
  core.bytes.fill('a\r\n', input, input + test.bytes.length + 64)
  core.bytes.write(test.bytes, input, 'latin1')
}

/** Feeds a head one byte at a time; the code of the first call that is not INCOMPLETE. */
function drip(test: HeadCase): number {
  let resume = 0
  for (let length = 1; length <= test.bytes.length; length++) {
    const code = read(test, length, resume)
    if (code !== abi.INCOMPLETE) return code
    resume = recordOf(test.maxFields).resume
  }
  return abi.INCOMPLETE
}

for (const { name, about, cases } of readCaseFiles<HeadCase>('heads')) {
  describe(`${name}: ${about}`, () => {
    for (const test of cases) {
      if (test.refused !== undefined) {
        it(`refuses ${test.title}`, () => {
          place(test)
          expect(read(test, test.bytes.length)).toBe(codeOf(test))
        })
      } else {
        it(`reads ${test.title}`, () => {
          place(test)
          expect(read(test, test.bytes.length)).toBe(0)
          check(test)
        })
      }
      if (test.message === 'trailers') continue
      it(`gets the same result byte by byte: ${test.title}`, () => {
        place(test)
        const code = drip(test)
        if (test.refused === undefined) {
          expect(code).toBe(0)
          const end = recordOf(test.maxFields).end - input
          check({ ...test, bytes: test.bytes.slice(0, end), expect: { ...test.expect, rest: '' } })
        } else {
          // A NUL is refused as soon as it is last, whatever it is part of.
          const nul = codeOf({ ...test, refused: 'BAD_FIELD_VALUE' })
          expect(test.title.startsWith('NUL') ? [codeOf(test), nul] : [codeOf(test)]).toContain(
            code,
          )
        }
      })
    }
  })
}

describe('the head reader', () => {
  it('scans each byte of a head a bounded number of times if the head arrives byte by byte', () => {
    const long = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'b'.repeat(60000)}`
    core.bytes.write(long, input, 'latin1')
    const head = recordOf()
    let resume = 0
    let unsettled = 0
    for (let length = 1; length <= long.length; length++) {
      const code = core.parseRequestHead(head, input, input + length, resume, 65536)
      if (code !== abi.INCOMPLETE) throw new Error(`${abi.nameOfCode(code)} at ${length}`)
      resume = head.resume
      unsettled = Math.max(unsettled, length - resume)
    }
    // Only a possible begin of the empty line is looked at again.
    expect(unsettled).toBeLessThanOrEqual(3)
  })

  it('reports the offset of the error', () => {
    core.bytes.write('GET / HTTP/1.1\r\nHost : a\r\n\r\n', input, 'latin1')
    expect(core.parseRequestHead(recordOf(), input, input + 28, 0, 65536)).toBe(abi.BAD_FIELD_NAME)
    expect(core.errorOffset).toBe(20)
  })

  it('refuses spans and records that lie outside its memory', () => {
    const head = recordOf()
    const size = core.bytes.length
    const outside = [
      core.parseRequestHead(head, size - 10, size + 10, 0, 100),
      core.parseRequestHead(head, size - 10, size, 0, 100),
      core.parseRequestHead(head, input + 10, input, 0, 100),
      core.parseRequestHead(head, input, input + 10, 11, 100),
      core.parseRequestHead(head, input, input + 10, -1, 100),
      core.parseRequestHead(head, input, input + 10, 0, 0),
      core.exports.head_request(size, input, input + 10, 0, 100),
      core.exports.head_request(-16, input, input + 10, 0, 100),
    ]
    expect(outside).toEqual(outside.map(() => abi.ERROR_ARGUMENT))
  })

  it('maps every refusal to a status', () => {
    expect(abi.statusOfRefusal(abi.BAD_HOST)).toBe(400)
    expect(abi.statusOfRefusal(abi.TARGET_TOO_LONG)).toBe(414)
    expect(abi.statusOfRefusal(abi.HEAD_TOO_LARGE)).toBe(431)
    expect(abi.statusOfRefusal(abi.METHOD_TOO_LONG)).toBe(501)
    expect(abi.statusOfRefusal(abi.VERSION_UNSUPPORTED)).toBe(505)
    expect(abi.statusOfRefusal(abi.ERROR_RESPONSE - 31)).toBe(502)
    expect(abi.nameOfCode(abi.ERROR_RESPONSE - 31)).toBe('HEAD_TOO_LARGE in a response')
  })
})
