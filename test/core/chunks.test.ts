import { describe, expect, it } from 'vitest'
import * as abi from '../../src/engines/core/index.ts'
import { createIoCore } from '../../src/engines/core/index.ts'
import { readCaseFiles } from './case-files.ts'

interface ChunkCase {
  readonly title: string
  /** Latin-1. */
  readonly bytes: string
  readonly data?: string
  readonly trailers?: string
  readonly rest?: string
  /** The body is not over. */
  readonly open?: boolean
  readonly flags?: readonly string[]
  readonly refused?: string
}

const trailerLimit = 256
const core = createIoCore({ memoryPages: 64 })
const input = core.allocate(65536)
const body = core.createChunkedBody()
const constants = new Map<string, unknown>(Object.entries(abi))

/** What the host sees of a body that comes in pieces cut at `cuts`. */
function scan(bytes: string, cuts: readonly number[]) {
  core.bytes.fill('0\r\n', input, input + bytes.length + 64)
  core.bytes.write(bytes, input, 'latin1')
  body.start(trailerLimit)
  const seen = { code: abi.CHUNKS_MORE as number, data: '', trailers: '', rest: '' }
  let at = 0
  for (const end of [...cuts, bytes.length]) {
    do {
      seen.code = body.read(input + at, input + end)
      if (seen.code < 0) return seen
      for (let index = 0; index < body.spanCount; index++) {
        seen.data += core.bytes.toString('latin1', body.spanStart(index), body.spanEnd(index))
      }
      if (body.trailerStart >= 0) {
        seen.trailers += core.bytes.toString('latin1', body.trailerStart, body.trailerEnd)
      }
      at = body.consumed - input
    } while (seen.code === abi.CHUNKS_AGAIN)
    if (seen.code === abi.CHUNKS_END) break
  }
  seen.rest = bytes.slice(at)
  return seen
}

function check(test: ChunkCase, cuts: readonly number[]): void {
  const seen = scan(test.bytes, cuts)
  if (test.refused !== undefined) {
    expect(abi.nameOfCode(seen.code)).toBe(test.refused)
    return
  }
  const end = test.open ? abi.CHUNKS_MORE : abi.CHUNKS_END
  const { data, trailers = '', rest = '' } = test
  expect(seen).toEqual({ code: end, data, trailers, rest })
  const flags = [...constants]
    .filter(([name, bit]) => name.startsWith('BODY_HAS_') && (body.flags & (bit as number)) !== 0)
    .map(([name]) => name.slice('BODY_HAS_'.length))
  expect(flags).toEqual(test.flags)
}

for (const { name, about, cases } of readCaseFiles<ChunkCase>('chunks')) {
  describe(`${name}: ${about}`, () => {
    for (const test of cases) {
      const verb = test.refused === undefined ? 'reads' : 'refuses'
      it(`${verb} ${test.title}`, () => check(test, []))
      it(`${verb} it however the bytes are split: ${test.title}`, () => {
        const places = Array.from({ length: Math.min(test.bytes.length, 200) }, (_, at) => at)
        for (const cut of places) check(test, [cut])
        check(test, places)
      })
    }
  })
}

describe('the chunk scanner', () => {
  it('reads nothing after the end of the body', () => {
    scan('0\r\n\r\n', [])
    expect(body.read(input, input + 5)).toBe(abi.CHUNKS_END)
    expect(body.consumed).toBe(input)
  })

  it('refuses spans outside its memory', () => {
    expect(body.read(core.bytes.length - 8, core.bytes.length)).toBe(abi.ERROR_ARGUMENT)
    expect(body.read(input + 1, input)).toBe(abi.ERROR_ARGUMENT)
  })
})
