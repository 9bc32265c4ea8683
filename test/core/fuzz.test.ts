import { describe, expect, it } from 'vitest'
import * as abi from '../../src/engines/core/index.ts'
import { createIoCore, type HeadRecord } from '../../src/engines/core/index.ts'
import fc from '../support/fast-check.ts'
import { readCaseFiles } from './case-files.ts'

// Every property runs a fixed number of times from a printed seed; FUZZ_RUNS lengthens it by hand.
const numRuns = Number(process.env.FUZZ_RUNS ?? 1500)
const core = createIoCore({ memoryPages: 128 })
const input = core.allocate(65536)
const head = core.createHead({ maxFields: 20 })
const body = core.createChunkedBody()

const samples = ['heads', 'chunks'].flatMap((folder) =>
  readCaseFiles<{ bytes: string; message?: string }>(folder).flatMap(({ cases }) =>
    cases.map(({ bytes }) => bytes).filter((bytes) => bytes.length < 2000),
  ),
)
const morsel = fc.constantFrom(
  ...['\r\n', '\r', '\n', '\0', ' ', '\t', ':', ',', '\r\n\r\n', 'Host: b\r\n', '\u00ff', '%'],
  ...['Content-Length: 1\r\n', 'Transfer-Encoding: chunked\r\n', 'Connection: x\r\n', '0\r\n', ';'],
)
const anyBytes = fc
  .uint8Array({ maxLength: 300 })
  .map((bytes) => Buffer.from(bytes).toString('latin1'))
/** A sample with a few stretches replaced. */
const mutated = fc
  .tuple(
    fc.constantFrom(...samples),
    fc.array(fc.tuple(fc.nat(), fc.nat(3), fc.oneof(morsel, anyBytes)), { maxLength: 3 }),
  )
  .map(([sample, edits]) =>
    edits.reduce((bytes, [at, gone, added]) => {
      const place = at % (bytes.length + 1)
      return bytes.slice(0, place) + added + bytes.slice(place + gone)
    }, sample),
  )
const bytes = fc.oneof({ weight: 4, arbitrary: mutated }, { weight: 1, arbitrary: anyBytes })

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const value = '[^\\x00-\\x08\\x0a-\\x1f\\x7f]*'
const requestShape = new RegExp(
  `^(?:\r\n)?${token} [\x21-\x22\x24-\x7e]+ HTTP/1\\.[01]\r\n(?:${token}:${value}\r\n)*\r\n$`,
)
const count = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].length

/** What must hold of any accepted request head, said without the reader's own code. */
function checkRequest(text: string): void {
  expect(text).toMatch(requestShape)
  const hosts = count(text, /\r\nhost:/gi)
  const lengths = count(text, /\r\ncontent-length:/gi)
  const codings = count(text, /\r\ntransfer-encoding:/gi)
  expect(hosts <= 1 && lengths <= 1 && codings <= 1 && lengths + codings <= 1).toBe(true)
  if (text.includes(' HTTP/1.1\r\n')) expect(hosts).toBe(1)
  else expect(codings).toBe(0)
  if (codings === 1) expect(text).toMatch(/\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n/i)
  if (lengths === 1) expect(text).toMatch(/\r\ncontent-length:[ \t]*[0-9]{1,16}[ \t]*\r\n/i)
}

/** Name, colon and value of every field, in order, make up the head. */
function checkSpans(record: HeadRecord, text: string): void {
  const lines = text.trimStart().split('\r\n').slice(1, -2)
  expect(record.fieldCount).toBe(lines.length)
  for (const [index, line] of lines.entries()) {
    const colon = line.indexOf(':')
    expect(record.name(index)).toBe(line.slice(0, colon))
    expect(record.value(index)).toBe(line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, ''))
  }
}

/** Reads up to `end`; the code of the last call and the data that was found. */
function readTo(from: number, end: number): { code: number; data: string } {
  let data = ''
  let at = from
  for (;;) {
    const code = body.read(at, end)
    for (let index = 0; code >= 0 && index < body.spanCount; index++) {
      data += core.bytes.toString('latin1', body.spanStart(index), body.spanEnd(index))
    }
    if (code !== abi.CHUNKS_AGAIN) return { code, data }
    at = body.consumed
  }
}

/** Scans a chunked body in pieces; returns the code, the data and the end. */
function scan(text: string, cuts: readonly number[]): readonly [number, string, number] {
  core.bytes.write(text, input, 'latin1')
  body.start(1024)
  let all = ''
  let from = 0
  for (const end of [...cuts, text.length]) {
    const { code, data } = readTo(input + from, input + end)
    if (code < 0) return [-1, '', 0]
    all += data
    from = end
    if (code === abi.CHUNKS_END) return [code, all, body.consumed - input]
  }
  return [abi.CHUNKS_MORE, all, text.length]
}

describe('random bytes', () => {
  it('are parsed as a strict request head or refused, with the same result if they arrive in pieces', () => {
    let accepted = 0
    fc.assert(
      fc.property(bytes, fc.nat(), (text, cut) => {
        core.bytes.fill(0x41, input, input + text.length + 64)
        core.bytes.write(text, input, 'latin1')
        const end = input + text.length
        const first = input + (cut % (text.length + 1))
        const begun = core.parseRequestHead(head, input, first, 0, 8192)
        const resumed =
          begun === abi.INCOMPLETE
            ? core.parseRequestHead(head, input, end, head.resume, 8192)
            : begun
        const code = core.parseRequestHead(head, input, end, 0, 8192)
        // A head in pieces may be refused later, with its last byte; it is never accepted instead.
        if (code < abi.INCOMPLETE) expect(resumed).toBeLessThan(0)
        else expect(resumed).toBe(code)
        if (code !== 0) return
        accepted++
        expect(head.end).toBeLessThanOrEqual(end)
        const whole = text.slice(0, head.end - input)
        checkRequest(whole)
        checkSpans(head, whole)
      }),
      { numRuns, seed: 20263 },
    )
    expect(accepted).toBeGreaterThan(numRuns / 30)
  })

  it('are parsed as a response head or as trailers, or refused', () => {
    fc.assert(
      fc.property(bytes, (text) => {
        core.bytes.write(text, input, 'latin1')
        const code = core.parseResponseHead(head, input, input + text.length, 0, 8192)
        expect(code === 0 || code === abi.INCOMPLETE || Math.floor(-code / 100) === 502).toBe(true)
        expect(core.parseTrailers(head, input, input + text.length)).toBeLessThanOrEqual(0)
      }),
      { numRuns, seed: 20264 },
    )
  })

  it('are scanned as a chunked body with the same result, whole or in pieces', () => {
    fc.assert(
      fc.property(bytes, fc.nat(), fc.nat(), (text, one, other) => {
        const size = text.length + 1
        const cuts = [one % size, other % size].sort((a, b) => a - b)
        expect(scan(text, cuts)).toEqual(scan(text, []))
      }),
      { numRuns, seed: 20265 },
    )
  })

  it('are added as a route or refused, and never damage the route table', () => {
    const table = core.exports.table_new()
    const word = fc.oneof(fc.constantFrom(0, 1, 2, -1, 80, 104, 0x7fffffff), fc.integer())
    const words = fc.array(word, { maxLength: 40 })
    let taken = 0
    fc.assert(
      fc.property(words, fc.nat(200), (spec, size) => {
        core.bytes.fill('/', input, input + 256)
        core.words.set(Int32Array.from(spec), input >> 2)
        const code = core.exports.route_add(table, input, size)
        expect(code).toBeLessThanOrEqual(0)
        if (code === 0) taken++
        core.bytes.write('GET ///// HTTP/1.1\r\nHost: a\r\n\r\n', input, 'latin1')
        expect(core.parseRequestHead(head, input, input + 64, 0, 8192)).toBe(0)
        expect(core.exports.match_route(table, spec[1] ?? 0, head.address)).toBeTypeOf('number')
      }),
      { numRuns, seed: 20266 },
    )
    expect(core.exports.route_count(table)).toBe(taken)
    expect(core.exports.table_free(table)).toBe(0)
  })
})
