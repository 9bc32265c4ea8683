import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type SseEvent, SseEventTooLarge, SseReader } from '../../../src/engines/sse/reader.ts'
import { cuts } from '../support/pieces.ts'
import { defineTarget } from '../support/target.ts'

const { cases } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../protocol/server-sent-events.json'), 'utf8'),
) as { readonly cases: readonly { text?: string; hex?: string }[] }

interface Reading {
  readonly events: readonly SseEvent[]
  readonly isTooLarge: boolean
  readonly isInside: boolean
}

function read(pieces: readonly Buffer[], limit: number, tooLarge: 'fail' | 'skip'): Reading {
  const reader = new SseReader(limit, tooLarge)
  const events: SseEvent[] = []
  try {
    for (const piece of pieces) {
      reader.push(piece, (event) => events.push(event))
      assert.ok(reader.settledBytes <= piece.length)
      piece.fill(0x21)
    }
  } catch (error) {
    if (!(error instanceof SseEventTooLarge)) throw error
    return { events, isTooLarge: true, isInside: true }
  }
  return { events, isTooLarge: false, isInside: reader.isInside }
}

/** The standard, word for word, on text that has come whole. */
function reference(input: Buffer): SseEvent[] {
  const events: SseEvent[] = []
  const lines = new TextDecoder().decode(input).split(/\r\n|\r|\n/)
  let data: string[] = []
  let type = ''
  let id: string | undefined
  let retry: number | undefined
  for (const line of lines.slice(0, -1)) {
    if (line === '') {
      const joined = data.length === 0 ? undefined : data.join('\n')
      if (joined !== undefined || id !== undefined || retry !== undefined)
        events.push({ type, data: joined, id, retry })
      data = []
      type = ''
      id = undefined
      retry = undefined
      continue
    }
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'data') data.push(value)
    else if (name === 'event') type = value
    else if (name === 'id' && !value.includes('\0')) id = value
    else if (name === 'retry' && /^[0-9]+$/.test(value))
      retry = Math.min(Number(value), Number.MAX_SAFE_INTEGER)
  }
  return events
}

export default defineTarget({
  about: 'server-sent events are what the standard makes of them, however the bytes are cut',
  samples: cases.map(({ text, hex = '' }) => text ?? Buffer.from(hex, 'hex')),
  words: [
    'data:',
    'data: ',
    'event:',
    'id:',
    'retry:',
    ':',
    '\r',
    '\n',
    '\r\n',
    '\n\n',
    '\uFEFF',
    '\0',
    '…',
  ],
  start: () => ({
    check(input) {
      const expected = reference(input)
      for (const pieces of cuts(input)) {
        assert.deepEqual(read(pieces, input.length + 1, 'fail').events, expected)
      }
      for (const tooLarge of ['fail', 'skip'] as const) {
        const [whole, ...others] = cuts(input).map((pieces) => read(pieces, 40, tooLarge))
        for (const other of others) assert.deepEqual(other, whole)
      }
    },
  }),
})
