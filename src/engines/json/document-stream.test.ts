import { describe, expect, it } from 'vitest'
import {
  type DocumentFraming,
  DocumentStream,
  type StreamPart,
  StreamPartTooLarge,
} from './document-stream.ts'

/** Returns the documents of a stream that arrives in pieces, and the stream with `X` in place of each. */
function read(framing: DocumentFraming, text: string, size: number, limit = 1_000) {
  const stream = new DocumentStream(framing, limit)
  const documents: string[] = []
  let same = ''
  let changed = ''
  const onPart = (part: StreamPart) => {
    same += part.bytes.toString()
    if (part.document !== undefined) documents.push(part.document.toString())
    changed += (part.document === undefined ? part.bytes : part.with(Buffer.from('X'))).toString()
  }
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) stream.push(bytes.subarray(at, at + size), onPart)
  stream.end(onPart)
  expect(same).toBe(text)
  return { documents, changed }
}

const sizes = [1, 2, 3, 7, 1_000]

describe('a stream of JSON documents', () => {
  it.each(sizes)('has one document in each line, in pieces of %i bytes', (size) => {
    expect(read('lines', '{"a":1}\n\n {"é":2}\r\n[]', size)).toEqual({
      documents: ['{"a":1}', ' {"é":2}\r', '[]'],
      changed: 'X\n\nX\nX',
    })
  })

  it.each(sizes)('has the data of each event, in pieces of %i bytes', (size) => {
    const text =
      'data: 1\n\n: a comment\nid: 7\ndata:{\ndata: "a":1}\nevent: x\n\ndata: [DONE]\n\nretry: 5\r\ndata\r\n\r\ndata: é\r\rdata: 3'
    expect(read('events', text, size)).toEqual({
      documents: ['1', '{\n"a":1}', 'é', '3'],
      changed:
        'data: X\n\n: a comment\nid: 7\ndata: X\nevent: x\n\ndata: [DONE]\n\nretry: 5\r\ndata\r\n\r\ndata: X\r\rdata: X',
    })
  })

  it.each(sizes)('has data of several lines that end with two bytes, in pieces of %i', (size) => {
    expect(read('events', 'data: [\r\ndata: 1]\r\n\r\ndata: 2\r\n\r\n', size)).toEqual({
      documents: ['[\n1]', '2'],
      changed: 'data: X\r\n\r\ndata: X\r\n\r\n',
    })
  })

  it('may begin with a byte order mark', () => {
    expect(read('events', '\ufeffdata: 1\n\n', 1)).toEqual({
      documents: ['1'],
      changed: '\ufeffdata: X\n\n',
    })
  })

  it.each(['lines', 'events'] as const)('of %s has one part for all blank lines', (framing) => {
    const stream = new DocumentStream(framing, 10)
    const parts: string[] = []
    const onPart = ({ bytes }: StreamPart) => void parts.push(bytes.toString())
    stream.push(Buffer.from(`${'\n'.repeat(100)}data: 1\n\n${'\r\n'.repeat(100)}`), onPart)
    stream.end(onPart)
    expect(parts.map((part) => part.trim())).toEqual(['', 'data: 1', ''])
  })

  it.each(['lines', 'events'] as const)('of %s has parts of a limited size', (framing) => {
    const text = `data: "${'a'.repeat(40)}"`
    expect(() => read(framing, `${text}\n\n`, 5, 30)).toThrow(StreamPartTooLarge)
    expect(() => read(framing, text, 5, 30)).toThrow(StreamPartTooLarge)
    expect(() => read(framing, `${text}\n\n`, 100, 30)).toThrow(StreamPartTooLarge)
  })
})
