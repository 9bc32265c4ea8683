import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { DocumentStream, type StreamPart } from '../../../src/engines/json/document-stream.ts'
import { isTooDeep } from '../../../src/engines/json/parse.ts'
import {
  JsonDocumentError,
  type PathText,
  PathTexts,
  withTexts,
} from '../../../src/engines/json/path-texts.ts'
import { type JsonPath, parsePath } from '../../../src/engines/json/paths.ts'
import { SseReader } from '../../../src/engines/sse/reader.ts'
import { cuts } from '../support/pieces.ts'
import { defineTarget } from '../support/target.ts'

const pathsOf = (...texts: readonly string[]) => texts.map((text) => parsePath(text) as JsonPath)
const finder = new PathTexts([pathsOf('$'), pathsOf('$..note', 'a[*].b', 'a[0]')])

function find(input: Buffer): readonly PathText[] | undefined {
  try {
    return finder.find(input)
  } catch (error) {
    assert.ok(error instanceof JsonDocumentError)
    return undefined
  }
}

/** Whether `JSON.parse` accepts the bytes, after a byte order mark. */
function isJson(input: Buffer): boolean {
  const text = new TextDecoder().decode(input)
  if (!isUtf8(input) || isTooDeep(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Every string of a document, names included, of which the parser drops those of repeated names. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  const names = Array.isArray(value) ? [] : Object.keys(value)
  return [...names, ...Object.values(value).flatMap(stringsIn)]
}

function documentsIn(pieces: readonly Buffer[]): string[] {
  const stream = new DocumentStream('events', 1_000_000)
  const documents: string[] = []
  const onPart = ({ document }: StreamPart) => {
    if (document !== undefined) documents.push(document.toString())
  }
  for (const piece of pieces) stream.push(piece, onPart)
  stream.end(onPart)
  return documents
}

/** The data of all events, and of the unfinished one. */
function dataOfEvents(input: Buffer): string[] {
  const data: string[] = []
  const reader = new SseReader(1_000_000, 'fail')
  const onEvent = (event: { readonly data: string | undefined }) => {
    if (event.data !== undefined) data.push(event.data)
  }
  reader.push(input, onEvent)
  if (reader.unfinishedData !== undefined) data.push(reader.unfinishedData)
  return data
}

export default defineTarget({
  about:
    'paths find the texts of exactly the documents that JSON.parse reads, and change nothing else',
  samples: [
    '{"a":[{"b":"x","note":1}],"note":{"note":"y"}}',
    '\ufeff{"n\\u006fte":"\\u0061\\ud800"} ',
    'data: {"note":"x"}\n\ndata:{\r\ndata:"a":1}\r\n\r\n: c\rdata\r\r',
  ],
  words: [
    '"note":',
    '"a":[',
    '{"b":',
    '\\u0061',
    '"',
    ']',
    '}',
    ',',
    '1e9',
    'data: ',
    '\r',
    '\n',
    '\n\n',
    '\ufeff',
  ],
  start: () => ({
    check(input) {
      const texts = find(input)
      assert.equal(texts !== undefined, isJson(input))
      if (texts !== undefined) {
        const values = texts.map(({ value }) => value)
        assert.equal(withTexts(input, texts, values), input)
        const parsed: unknown = JSON.parse(new TextDecoder().decode(input))
        for (const text of stringsIn(parsed)) assert.ok(values.includes(text))
        const changed = withTexts(
          input,
          texts,
          texts.map(() => 'changed'),
        )
        const left = stringsIn(JSON.parse(new TextDecoder().decode(changed)))
        for (const text of left) assert.equal(text, 'changed')
      }
      const expected = dataOfEvents(input).filter((data) => !/^(?:[ \t\r\n]*|\[DONE\])$/.test(data))
      for (const pieces of cuts(input)) assert.deepEqual(documentsIn(pieces), expected)
    },
  }),
})
