/** Random requests, answers and streams of language models, with secrets in any place where guards look. */

import type { JsonObject } from '../../../src/engines/messages/json/json.ts'
import { encodedText, isReadable } from '../../../src/engines/messages/mask/encoded-texts.ts'
import { requestScope } from '../../../src/engines/messages/mask/text-fields.ts'

/** A small generator, so that a seed replays a run. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#state / 2 ** 32) * limit)
  }

  of<Item>(list: readonly Item[]): Item {
    return list[this.below(list.length)] as Item
  }

  list<Item>(limit: number, make: (at: number) => Item): Item[] {
    return Array.from({ length: this.below(limit + 1) }, (_, at) => make(at))
  }
}

const pieces = [
  'write to ',
  'bob@example.com',
  'bob@exam',
  'ple.com',
  ' ',
  'sécret-42',
  'sécret-',
  '42 and ',
  '4111 1111 ',
  '1111 1111',
  '"quoted"\\n\n\t',
  '日本語 😀 ',
  '😀'.charAt(0),
  '😀'.charAt(1),
  '\u2028</script>',
  '',
  'ab',
  '.',
] as const

export const textOf = (random: Random): string =>
  Array.from({ length: 1 + random.below(5) }, () => random.of(pieces)).join('')

const base64Of = (random: Random): string => Buffer.from(textOf(random)).toString('base64')

const names = [
  ...[
    'id',
    'call_id',
    'file_ids',
    'url',
    'image_url',
    'encrypted_x',
    'name',
    'status',
    'signature',
  ],
  ...['arguments', 'input', 'custom', 'parameters', 'action', 'result', 'schema', 'usage', 'tools'],
  ...[
    'thinking',
    'reasoning_content',
    'summary',
    'title',
    'new_field',
    'queries',
    'data',
    'filename',
  ],
  ...[
    'file_data',
    'media_type',
    'refusal',
    'text',
    'transcript',
    'content',
    'results',
    'variables',
  ],
  ...[
    'annotations',
    'context',
    'metadata',
    'Id',
    'a_url_b',
    'instructions',
    'audio',
    'input_audio',
  ],
]
const types = [
  ...[
    'text',
    'foo',
    'reasoning_text',
    'summary_text',
    'reasoning',
    'tool_use',
    'server_tool_use',
    'shell_call',
    'x_call',
  ],
  ...['image_generation_call', 'web_search_result', 'redacted_thinking', 'refusal', 'output_audio'],
]

/** An object with fields that no list of the generator knows together. */
export function anyObject(random: Random, depth = 0): Record<string, unknown> {
  const fields = random.list(4, () => [random.of(names), anyValue(random, depth + 1)] as const)
  const isTyped = random.below(2) === 0
  return { ...(isTyped && { type: random.of(types) }), ...Object.fromEntries(fields) }
}

function anyValue(random: Random, depth: number): unknown {
  const kind = random.below(depth > 3 ? 3 : 6)
  if (kind === 4) return random.list(3, () => anyValue(random, depth + 1))
  if (kind === 5) return anyObject(random, depth)
  return kind === 3 ? random.of([null, 1, true]) : textOf(random)
}

/** A document in base64, as data or as a data URL. */
const encodedPart = (random: Random): unknown =>
  random.of<() => unknown>([
    () => ({
      file: { filename: random.of(['a.txt', 'a.TXT', 'a.pdf', '']), file_data: base64Of(random) },
    }),
    () => ({ file_url: `data:text/plain;x=y;base64,${base64Of(random)}` }),
    () => ({ image_url: { url: `data:image/png;base64,${base64Of(random)}` } }),
    () => ({ file_data: 'data:text/plain,bob@example.com', filename: textOf(random) }),
    () => ({ image_url: { url: `${random.of(plainUrls)}${plainDataOf(random)}` } }),
    () => ({
      source: { type: 'base64', media_type: random.of(mediaTypes), data: base64Of(random) },
    }),
  ])()

const plainUrls = [
  'data:image/svg+xml,',
  'data:image/svg+xml;utf8,',
  ' DATA:;charset=utf-8,',
  'data:,',
  'data: image/png ,',
  'data:;base64,',
  'data:image/svg+xml; BASE64 ,',
]

/** Data of a URL, partly escaped. */
const plainDataOf = (random: Random): string =>
  random.of([encodeURIComponent, (text: string) => text, base64Text])(
    random.of(['bob@example.com', '<a>"1" é\u{1f600}', '%62ob%40example.com%', 'a%zz%4', 'a\nb']),
  )

const base64Text = (text: string): string => Buffer.from(text).toString('base64')

const mediaTypes = [
  'Text/Plain',
  'application/XML;a',
  'text/csv',
  'application/json',
  'application/jsonl',
  'image/png',
  'application/xml;a=b',
]

const part = (random: Random): unknown =>
  random.of<() => unknown>([
    () => anyObject(random),
    () => encodedPart(random),
    () => ({ type: 'text', text: textOf(random) }),
    () => ({ text: textOf(random), type: 'input_text' }),
    () => ({ type: 'image_url', image_url: { url: 'data:bob@example.com' } }),
    () => ({ text: textOf(random), type: 'reasoning_text' }),
    () => ({ type: 'tool_result', content: contentOf(random), id: 'bob@example.com' }),
    () => ({ type: 'document', title: textOf(random), source: { data: textOf(random) } }),
    () => ({ type: 'document', source: { content: [{ type: 'text', text: textOf(random) }] } }),
    () => ({ type: 'document', source: { type: 'base64', data: base64Of(random) } }),
    () => ({ type: 'refusal', refusal: textOf(random) }),
    () => ({ type: 'output_audio', transcript: textOf(random) }),
    () => ({ type: 'shell', output: textOf(random), stdout: textOf(random), logs: 'ab' }),
  ])()

function contentOf(random: Random): unknown {
  return random.below(3) === 0 ? textOf(random) : random.list(4, () => part(random))
}

const message = (random: Random) => ({
  role: random.of(['user', 'assistant', 'system']),
  content: contentOf(random),
  ...(random.below(5) === 0 && { refusal: textOf(random) }),
  ...(random.below(5) === 0 && anyObject(random)),
  ...(random.below(5) === 0 && { tool_calls: [{ function: { arguments: textOf(random) } }] }),
})

export type Format = 'Completions' | 'Messages' | 'Responses' | 'Embeddings'

/** Fields of a request, without texts of other formats, which are refused. */
function otherFields(random: Random): Record<string, unknown> {
  const {
    content: _content,
    instructions: _text,
    input: _input,
    queries: _all,
    ...rest
  } = anyObject(random)
  return rest
}

export function requestOf(format: Format, random: Random): Record<string, unknown> {
  const messages = random.list(4, () => message(random))
  const tools = [{ name: 'bob@example.com', parameters: { min: -1.5e300, list: [1, 2, null] } }]
  switch (format) {
    case 'Completions':
      return { model: 'm', messages, tools, ...otherFields(random), stream: random.below(2) === 0 }
    case 'Messages':
      return { messages, system: contentOf(random), tools, max_tokens: 5 }
    case 'Responses':
      return {
        ...otherFields(random),
        instructions: textOf(random),
        input: random.below(2) === 0 ? textOf(random) : messages,
        prompt: { id: 'bob@example.com', variables: { a: textOf(random), b: part(random) } },
      }
    case 'Embeddings':
      return {
        input: random.below(2) === 0 ? textOf(random) : random.list(4, () => textOf(random)),
      }
  }
}

const annotation = (random: Random) => ({ type: 'url_citation', title: textOf(random), url: 'ab' })

const outputItem = (random: Random) => ({
  type: 'message',
  content: random.list(3, () => ({
    type: 'output_text',
    text: textOf(random),
    annotations: random.list(2, () => annotation(random)),
    logprobs: random.list(2, () => ({ token: 'ab', logprob: -0.5 })),
  })),
})

export function answerOf(format: Format, random: Random): Record<string, unknown> {
  switch (format) {
    case 'Completions':
      return {
        model: 'm-2',
        ...anyObject(random),
        choices: random.list(3, (index) => ({
          index,
          ...(random.below(3) === 0 && {
            delta: { content: textOf(random), ...anyObject(random) },
          }),
          message: {
            role: 'assistant',
            content: contentOf(random),
            refusal: random.below(3) === 0 ? textOf(random) : null,
            ...(random.below(3) === 0 && { audio: { transcript: textOf(random) } }),
            annotations: random.list(2, () => annotation(random)),
          },
          logprobs: random.below(2) === 0 ? { content: [{ token: 'a' }] } : null,
          finish_reason: 'stop',
        })),
        usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
      }
    case 'Messages':
      return {
        content: random.list(4, () => ({
          ...(part(random) as object),
          citations: random.list(2, () => ({ cited_text: textOf(random), document_id: 'ab' })),
        })),
        usage: { input_tokens: 3, cache_read_input_tokens: 4, output_tokens: 5 },
      }
    case 'Responses':
      return {
        ...anyObject(random),
        output: random.list(3, () =>
          random.below(2) === 0 ? anyObject(random) : outputItem(random),
        ),
        output_text: textOf(random),
        usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
      }
    case 'Embeddings':
      return { data: [{ embedding: [0.1, -2e-7] }], usage: { prompt_tokens: 4, total_tokens: 4 } }
  }
}

/** Text documents of answers that are not base64 end guarded answers. */
export function hasUnreadable(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasUnreadable)
  if (typeof value !== 'object' || value === null) return false
  return Object.keys(value).some((name) => {
    const data = encodedText(value as JsonObject, name, requestScope)
    const isBroken = typeof data === 'object' && !isReadable(data)
    return isBroken || hasUnreadable((value as JsonObject)[name])
  })
}
