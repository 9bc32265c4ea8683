import assert from 'node:assert/strict'
import {
  CHUNKS_AGAIN,
  CHUNKS_END,
  CHUNKS_MORE,
  type ChunkedBody,
  createIoCore,
  type IoCore,
} from '../../../src/engines/core/index.ts'
import { readCaseFiles } from '../../core/case-files.ts'
import { cuts } from '../support/pieces.ts'
import { defineTarget } from '../support/target.ts'

const largest = 60_000

interface Reading {
  readonly code: number
  readonly data: string
  readonly length: number
}

function read(core: IoCore, body: ChunkedBody, input: number, pieces: readonly Buffer[]): Reading {
  body.start(1024)
  let data = ''
  let at = input
  let end = input
  let code: number = CHUNKS_MORE
  for (const piece of pieces) {
    core.bytes.set(piece, end)
    end += piece.length
    do {
      code = body.read(at, end)
      if (code < 0) return { code: -1, data: '', length: 0 }
      for (let index = 0; index < body.spanCount; index++) {
        data += core.bytes.toString('latin1', body.spanStart(index), body.spanEnd(index))
      }
      at = body.consumed
    } while (code === CHUNKS_AGAIN)
    if (code === CHUNKS_END) break
    at = end
  }
  return { code, data, length: code === CHUNKS_END ? at - input : end - input }
}

export default defineTarget({
  about: 'chunked bodies give the same data and the same end however they are cut',
  samples: readCaseFiles<{ bytes: string }>('chunks')
    .flatMap(({ cases }) => cases.map(({ bytes }) => Buffer.from(bytes, 'latin1')))
    .filter(({ length }) => length < 2000),
  words: ['\r\n', '\r', '\n', '0', '0\r\n', 'f', ';', ';a="b"', '\r\n\r\n', 'a: b\r\n'],
  start() {
    const core = createIoCore({ memoryPages: 128 })
    const input = core.allocate(65_536)
    const body = core.createChunkedBody()
    return {
      check(bytes) {
        const [whole, ...others] = cuts(bytes.subarray(0, largest)).map((pieces) =>
          read(core, body, input, pieces),
        )
        for (const other of others) assert.deepEqual(other, whole)
        assert.equal(core.trap, undefined)
      },
    }
  },
})
