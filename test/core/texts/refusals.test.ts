import { afterAll, describe, expect, it } from 'vitest'
import {
  type CoreError,
  compileGuards,
  type TextsOptions,
  textMemoryBytes,
} from '../../../src/engines/core/index.ts'
import { answerOf, Random, requestOf } from './messages.ts'
import { readSse, sse, streamOf } from './streams.ts'

const outcome = compileGuards([
  {
    rules: [
      { builtin: 'Email', replacement: '<EMAIL>' },
      { pattern: 'sécret-[0-9]+', replacement: '<masked>' },
    ],
  },
  { rules: [{ pattern: 'forbidden', replacement: '' }], rejects: true },
])
if (!outcome.ok) throw new Error(outcome.message)
const { guards } = outcome
afterAll(() => guards.dispose())

function run(options: Omit<TextsOptions, 'limit'>, text: string | Uint8Array, limit = 1 << 20) {
  const rewriter = guards.rewriter({ limit, ...options })
  try {
    const bytes = Buffer.from(text)
    return { text: Buffer.from(rewriter.end(bytes)).toString(), details: rewriter.details }
  } finally {
    rewriter.dispose()
  }
}

const request = { format: 'Completions', message: 'request' } as const
const nested = (depth: number) => `{"messages":[],"a":${'['.repeat(depth)}${']'.repeat(depth)}}`

describe('the rewriter of texts refuses', () => {
  it.each([
    ['an empty body', ''],
    ['a list', '[]'],
    ['a text after the document', '{} x'],
    ['a comma at the end', '{"a":[1,]}'],
    ['a number with a leading zero', '{"a":01}'],
    ['a control character in a string', '{"a":"\n"}'],
    ['an unknown escape', '{"a":"\\x"}'],
    ['a cut escape', '{"a":"\\u12'],
    ['a word', '{"a":truE}'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
  ])('%s', (_, text) => {
    expect(() => run(request, text)).toThrow('TEXTS_MALFORMED')
  })

  it.each([
    ['a name that occurs twice', '{"messages":[],"messages":[]}', 'TEXTS_HIDDEN'],
    ['a name in another case', '{"messages":[{"Content":"x"}]}', 'TEXTS_HIDDEN'],
    ['a name with a letter that folds', '{"meſſages":[]}', 'TEXTS_HIDDEN'],
    ['a list inside a list', '{"messages":[{"content":[["x"]]}]}', 'TEXTS_NOT_TEXT'],
    ['a text that is an object', '{"messages":[{"content":[{"text":{}}]}]}', 'TEXTS_NOT_TEXT'],
    ['more than 200 levels', nested(200), 'TEXTS_TOO_DEEP'],
  ])('%s', (_, text, code) => {
    expect(() => run(request, text)).toThrow(code)
  })

  it('token numbers as the input of embeddings', () => {
    const embeddings = { format: 'Embeddings', message: 'request' } as const
    expect(() => run(embeddings, '{"input":[1,2]}')).toThrow('TEXTS_NOT_TEXT')
    expect(() => run(embeddings, '{"input":[[1,2]]}')).toThrow('TEXTS_NOT_TEXT')
  })

  it('a document and an event above the limit', () => {
    expect(() => run(request, `{"messages":"${'x'.repeat(1000)}"}`, 1000)).toThrow(
      'TEXTS_TOO_LARGE',
    )
    const stream = { format: 'Completions', message: 'stream' } as const
    expect(() => run(stream, `data: ${'x'.repeat(1000)}`, 1000)).toThrow('TEXTS_TOO_LARGE')
  })

  it('a stream with many parts behind one that does not end', () => {
    const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`
    const part = (index: number) =>
      event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'a' } })
    const parts = (count: number) =>
      Array.from(
        { length: count },
        (_, at) => `${part(at)}${at === 0 ? '' : event({ type: 'content_block_stop', index: at })}`,
      ).join('')
    const stream = { format: 'Messages', message: 'stream' } as const
    expect(run(stream, parts(500)).text).toContain('"index":499')
    expect(() => run(stream, parts(600))).toThrow('TEXTS_TOO_MANY')
  })

  it('an event that is not JSON, and every byte after it', () => {
    const rewriter = guards.rewriter({ format: 'Messages', message: 'stream', limit: 1000 })
    const push = (text: string) => Buffer.from(rewriter.push(Buffer.from(text))).toString()
    expect(push('data: {"type":"ping"}\n\n')).toBe('data: {"type":"ping"}\n\n')
    expect(() => push('data: {"type":"ping"}\n\ndata: bob@example.com\n\n')).toThrow(
      'TEXTS_MALFORMED',
    )
    expect(() => push('data: {}\n\n')).toThrow('TEXTS_MALFORMED')
    rewriter.dispose()
  })
})

describe('the rewriter of texts', () => {
  it('accepts 200 levels', () => {
    expect(run(request, nested(199)).text).toBe(nested(199))
  })

  it('counts the matches of each rule, in the order of the first matches', () => {
    const rewriter = guards.rewriter({ format: 'Completions', message: 'answer', limit: 1000 })
    const content = 'sécret-1 bob@example.com sécret-2'
    const annotations = [{ title: 'bob@example.com' }]
    rewriter.end(Buffer.from(JSON.stringify({ choices: [{ message: { content, annotations } }] })))
    expect(rewriter.matchesOf(0)).toEqual([
      { rule: undefined, count: 1 },
      { rule: 1, count: 2 },
      { rule: 0, count: 1 },
    ])
    expect(rewriter.matchesOf(1)).toEqual([])
    rewriter.dispose()
  })

  it('holds back no more of a stream than its own limit for that', () => {
    const options = { format: 'Completions', message: 'stream', limit: 1 << 20 } as const
    const event = Buffer.from(
      `data: ${JSON.stringify({ choices: [{ delta: { content: `${'a'.repeat(60)}.` } }] })}\n\n`,
    )
    const held = (heldLimit: number) => () => {
      const rewriter = guards.rewriter({ ...options, heldLimit })
      try {
        for (let at = 0; at < 4; at++) rewriter.push(event)
      } finally {
        rewriter.dispose()
      }
    }
    expect(held(1 << 10)).not.toThrow()
    expect(held(16)).toThrow('TEXTS_UNDECIDED')
  })

  it('reports the first guard that rejects', () => {
    const body = (content: string) => JSON.stringify({ messages: [{ role: 'user', content }] })
    const escaped = body('this is forbidden').replace('for', '\\u0066or')
    expect(run(request, escaped).details.rejectedBy).toBe(1)
    expect(run(request, body('bob@example.com')).details.rejectedBy).toBeUndefined()
  })

  it.each([
    [
      'Completions',
      'data: {"error":{"message":"no \\"x\\"","type":"api_error","param":null,"code":null}}\n\n',
    ],
    [
      'Messages',
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"no \\"x\\""}}\n\n',
    ],
    [
      'Responses',
      'event: error\ndata: {"type":"error","code":null,"message":"no \\"x\\"","param":null,"sequence_number":4}\n\n',
    ],
  ] as const)('ends a %s stream with the error of its format', (format, error) => {
    const rewriter = guards.rewriter({ format, message: 'stream', limit: 1000 })
    const good = 'data: {"type":"a","sequence_number":3}\n\n'
    expect(() => rewriter.push(Buffer.from(`${good}data: {\n\n`))).toThrow('TEXTS_MALFORMED')
    expect(Buffer.from(rewriter.fail(502, 'no "x"')).toString()).toBe(good + error)
    rewriter.dispose()
  })

  it('writes JSON without secrets, or refuses, whatever bytes of a message are damaged', () => {
    let refused = 0
    for (let seed = 1; seed <= 3000; seed++) {
      const random = new Random(seed)
      const format = random.of(['Completions', 'Messages', 'Responses', 'Embeddings'] as const)
      const message = random.of(['request', 'answer'] as const)
      const make = message === 'request' ? requestOf : answerOf
      const bytes = Buffer.from(JSON.stringify(make(format, random)))
      for (let times = 1 + random.below(3); times > 0; times--) {
        bytes[random.below(bytes.length)] = random
          .of([...'{}[]",:\\u0e x', '\u0000', '\u00ff'])
          .charCodeAt(0)
      }
      const isJson = isDocument(bytes)
      try {
        JSON.parse(run({ format, message }, bytes).text)
        expect(isJson, `seed ${seed}`).toBe(true)
      } catch (error) {
        expect((error as CoreError).name, `seed ${seed}: ${error}`).toBe('CoreError')
        if (!isJson) refused++
      }
    }
    expect(refused).toBeGreaterThan(1000)
  })

  it('writes events of JSON, or refuses, whatever bytes of a stream are damaged', () => {
    for (let seed = 1; seed <= 1500; seed++) {
      const random = new Random(seed)
      const format = random.of(['Completions', 'Messages', 'Responses'] as const)
      const bytes = Buffer.from(sse(streamOf(format, random), random))
      for (let times = 1 + random.below(3); times > 0; times--) {
        bytes[random.below(bytes.length)] = random.of([...'{}[]",:\\u0e x\n\r']).charCodeAt(0)
      }
      try {
        for (const { data } of readSse(run({ format, message: 'stream' }, bytes).text)) {
          if (data !== '[DONE]' && data !== '') JSON.parse(data)
        }
      } catch (error) {
        expect((error as CoreError).name, `seed ${seed}: ${error}`).toBe('CoreError')
      }
    }
  })

  it('does not keep memory of messages that ended', () => {
    const random = new Random(3)
    const bytes = Buffer.from(sse(streamOf('Responses', random), random))
    const round = () => {
      const rewriter = guards.rewriter({ format: 'Responses', message: 'stream', limit: 1 << 16 })
      rewriter.push(bytes.subarray(0, random.below(bytes.length)))
      rewriter.dispose()
    }
    for (let at = 0; at < 200; at++) round()
    const before = textMemoryBytes()
    for (let at = 0; at < 5000; at++) round()
    expect(textMemoryBytes()).toBe(before)
  })
})

/** Is it a JSON object in UTF-8? */
function isDocument(bytes: Uint8Array): boolean {
  try {
    const parsed = JSON.parse(
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
    )
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
  } catch {
    return false
  }
}
