import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type SseEvent, SseEventTooLarge, SseReader } from '../../src/engines/sse/reader.ts'

interface Case {
  readonly name: string
  readonly text?: string
  readonly hex?: string
  readonly events: readonly { type: string; data: string; lastEventId: string }[]
  readonly retry?: number
}

const { cases } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'server-sent-events.json'), 'utf8'),
) as { readonly cases: readonly Case[] }

const bytesOf = ({ text, hex }: Case) =>
  text === undefined ? Buffer.from(hex ?? '', 'hex') : Buffer.from(text)

/** Reads bytes in pieces of one size; every piece is overwritten behind it, as sockets do. */
function read(bytes: Buffer, size: number, reader = new SseReader(65_536, 'fail')): SseEvent[] {
  const events: SseEvent[] = []
  for (let at = 0; at < bytes.length; at += size) {
    const piece = Buffer.from(bytes.subarray(at, at + size))
    reader.push(piece, (event) => events.push(event))
    piece.fill(0x21)
  }
  return events
}

/** What an EventSource would make of it. */
function asEventSource(events: readonly SseEvent[]) {
  let lastEventId = ''
  let retry: number | undefined
  const seen: Case['events'][number][] = []
  for (const { type, data, id, retry: told } of events) {
    lastEventId = id ?? lastEventId
    retry = told ?? retry
    if (data !== undefined) seen.push({ type: type || 'message', data, lastEventId })
  }
  return { events: seen, retry }
}

describe('a stream of server-sent events', () => {
  it.each(cases.map((one) => [one.name, one] as const))('%s', (_name, one) => {
    const bytes = bytesOf(one)
    const expected = { events: one.events, retry: one.retry }
    for (const size of [bytes.length, 1, 2, 3, 5, 7]) {
      expect(asEventSource(read(bytes, size)), `in pieces of ${size}`).toEqual(expected)
    }
  })

  it('reports whether an event has begun', () => {
    const reader = new SseReader(100, 'fail')
    const states = [...'a: b\n\n: c\n\n'].map((letter) => {
      read(Buffer.from(letter), 1, reader)
      return reader.isInside ? 'i' : '-'
    })
    expect(states.join('')).toBe('iiiii-iii--')
  })
})

describe('the size limit of a server-sent event', () => {
  const filler = ['data:\n', ':\n', 'x\n', 'event:\n', 'id:\n', 'data:12345\n', ': a comment\r\n']

  it.each(filler)('counts every byte of %j', (line) => {
    const text = Buffer.from(line.repeat(100))
    for (const size of [text.length, 1, 64]) {
      expect(() => read(text, size, new SseReader(text.length - 1, 'fail'))).toThrow(
        SseEventTooLarge,
      )
      expect(() => read(text, size, new SseReader(text.length, 'fail'))).not.toThrow()
    }
  })

  it('starts again after every empty line', () => {
    const text = Buffer.from('data: a\n\n'.repeat(1000))
    for (const size of [text.length, 1, 100]) {
      expect(read(text, size, new SseReader(9, 'fail'))).toHaveLength(1000)
    }
  })

  it('returns the events before one that is too large', () => {
    const reader = new SseReader(20, 'fail')
    const events: SseEvent[] = []
    const text = Buffer.from(`data: a\n\ndata: ${'b'.repeat(30)}\n\n`)
    expect(() => reader.push(text, (event) => events.push(event))).toThrow(SseEventTooLarge)
    expect(events.map(({ data }) => data)).toEqual(['a'])
  })

  it('skips an event that is too large if asked to, and continues after it', () => {
    const large = ['data: b'.repeat(30), 'data:\n'.repeat(50), ':\r\n'.repeat(50), 'x'.repeat(500)]
    for (const block of large) {
      const text = Buffer.from(
        `data: a\n\n${block.trimEnd()}\nid: 5\n\nevent: e\r\ndata: c\r\n\r\n`,
      )
      for (const size of [text.length, 1, 2, 33]) {
        const events = read(text, size, new SseReader(40, 'skip'))
        expect(events.map(({ type, data, id }) => [type, data, id])).toEqual([
          ['', 'a', undefined],
          ['e', 'c', undefined],
        ])
      }
    }
  })
})
