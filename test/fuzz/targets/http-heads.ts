import assert from 'node:assert/strict'
import {
  createIoCore,
  type HeadRecord,
  INCOMPLETE,
  type IoCore,
} from '../../../src/engines/core/index.ts'
import { HeadReader } from '../../../src/engines/http/message/head-reader.ts'
import { readCaseFiles } from '../../core/case-files.ts'
import { defineTarget } from '../support/target.ts'

const largest = 60_000
const headLimit = 8192

type Parse = (start: number, end: number, resume: number) => number

function outcome(head: HeadRecord, code: number): unknown {
  if (code !== 0) return code
  return Array.from({ length: head.fieldCount }, (_, at) => [head.name(at), head.value(at)])
}

/** Reads byte by byte until the reader has an answer. */
function inBytes(parse: Parse, head: HeadRecord, start: number, end: number): unknown {
  let code = INCOMPLETE
  for (let at = start + 1; at <= end && code === INCOMPLETE; at++) {
    code = parse(start, at, at === start + 1 ? 0 : head.resume)
  }
  return outcome(head, code)
}

function checkHead(core: IoCore, head: HeadRecord, parse: Parse, start: number, end: number): void {
  const whole = outcome(head, parse(start, end, 0))
  assert.equal(core.trap, undefined)
  const pieces = inBytes(parse, head, start, end)
  // A refusal may have another reason when fewer bytes are known; it stays a refusal.
  if (typeof whole === 'number' && whole < 0 && whole !== INCOMPLETE) {
    assert.ok(typeof pieces === 'number' && pieces < 0, `${pieces} in bytes, ${whole} whole`)
  } else assert.deepEqual(pieces, whole)
}

/** The engine shows the core the heads of many connections in turn, each in pieces. */
function checkTurns(reader: HeadReader, kind: 'readRequest' | 'readResponse', bytes: Buffer): void {
  const read = (end: number, resume: number) => {
    const code = reader[kind](bytes, 0, end, headLimit, resume)
    return { code, resume: reader.resume, length: code === 0 ? reader.headLength : 0 }
  }
  for (let end = 1, resume = 0; end <= bytes.length; end++) {
    const expected = read(end, 0)
    reader.readRequest(otherHead, 0, otherHead.length, headLimit, 0)
    const found = read(end, resume)
    if (found.code < 0 && expected.code < 0 && expected.code !== INCOMPLETE) return
    assert.deepEqual(found, expected, `with ${end} bytes`)
    if (found.code !== INCOMPLETE) return
    resume = found.resume
  }
}

const otherHead = Buffer.from(`\r\n\r\n${'\r\n\n'.repeat(1000)}`)

const samples = readCaseFiles<{ bytes: string }>('heads')
  .flatMap(({ cases }) => cases.map(({ bytes }) => Buffer.from(bytes, 'latin1')))
  .filter(({ length }) => length < 2000)

export default defineTarget({
  about: 'heads of requests and responses are read alike whole and byte by byte',
  samples,
  words: [
    '\r\n',
    '\r',
    '\n',
    '\0',
    ' ',
    '\t',
    ':',
    ',',
    '\r\n\r\n',
    'Host: b\r\n',
    '%',
    'Content-Length: 1\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Connection: x\r\n',
  ],
  start() {
    const core = createIoCore({ memoryPages: 128 })
    const input = core.allocate(65_536)
    const head = core.createHead({ maxFields: 20 })
    const reader = new HeadReader(core, head)
    return {
      check(bytes) {
        const length = Math.min(bytes.length, largest)
        core.bytes.fill(0x41, input, input + length + 64)
        core.bytes.set(bytes.subarray(0, length), input)
        const end = input + length
        const request: Parse = (start, stop, resume) =>
          core.parseRequestHead(head, start, stop, resume, headLimit)
        const response: Parse = (start, stop, resume) =>
          core.parseResponseHead(head, start, stop, resume, headLimit)
        checkHead(core, head, request, input, end)
        checkHead(core, head, response, input, end)
        const start = bytes.subarray(0, 600)
        checkTurns(reader, 'readRequest', start)
        checkTurns(reader, 'readResponse', start)
      },
    }
  },
})
