/** Random streams of answers, cut into events at any place, and what a client reads from a stream. */
import { isLabel, responseScope } from '../../../src/engines/messages/mask/text-fields.ts'
import { anyObject, type Format, type Random, textOf } from './messages.ts'

export interface SentEvent {
  readonly event: string | undefined
  readonly data: string
}

type Json = Record<string, unknown>

const unnamed = (body: Json): SentEvent => ({ event: undefined, data: JSON.stringify(body) })
const named = (body: Json): SentEvent => ({
  event: String(body.type),
  data: JSON.stringify(body),
})

/** Splits a text at UTF-16 units, so that surrogate pairs and matches may be cut. */
function split(text: string, random: Random): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(6)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces.length === 0 ? [''] : pieces
}

/** Fields whose text is somewhere inside of the delta. */
const nested = ['parts', 'new_parts', 'objects', 'lists'] as const

/** A delta with a piece of text; the same field has the piece at the same path. */
function deltaOf(field: string, piece: unknown): Json {
  switch (field) {
    case 'audio':
      return { audio: { transcript: piece } }
    case 'parts':
      return { content: [{ type: 'text', text: piece }] }
    case 'new_parts':
      return { content: [{ type: 'new', new: piece, id: 'a' }] }
    case 'objects':
      return { new: { stdout: piece, list: [null, { a: '' }] }, index: 3 }
    case 'lists':
      return { new: [[], { b: 1 }, [piece]], arguments: '{"a":' }
    default:
      return { [field]: piece }
  }
}

function completions(random: Random, other: typeof anyObject): SentEvent[] {
  const choices = Array.from({ length: 1 + random.below(3) }, (_, index) => ({
    index,
    field: random.of([...['content', 'refusal', 'text', 'audio', 'new_field', 'title'], ...nested]),
    pieces: split(textOf(random), random),
  }))
  const events: SentEvent[] = []
  const head = { id: 'x', model: 'm', usage: null }
  /** What the provider writes before the end of a choice. */
  const early = random.of([null, null, null, '', 'stop', 'null', false, 0])
  for (let at = 0; choices.some(({ pieces }) => at <= pieces.length); at++) {
    const now = choices.filter(({ pieces }) => at <= pieces.length)
    const bodies = now.map(({ index, field, pieces }) => {
      const piece = pieces[at]
      const delta = deltaOf(field, piece)
      const text = piece === undefined ? { delta: {} } : field === 'text' ? delta : { delta }
      const finish_reason = piece === undefined ? 'stop' : early
      const name = random.of(['message', 'new'])
      const more = random.below(9) === 0 ? { [name]: other(random) } : {}
      return { ...text, ...more, index, finish_reason, logprobs: { content: [{ token: 'ab' }] } }
    })
    if (random.below(2) === 0) events.push(unnamed({ ...head, choices: bodies }))
    else for (const body of bodies) events.push(unnamed({ ...head, choices: [body] }))
  }
  const usage = { prompt_tokens: 5, completion_tokens: 6 }
  return [...events, unnamed({ ...head, choices: [], usage }), { event: undefined, data: '[DONE]' }]
}

function messages(random: Random, other: typeof anyObject): SentEvent[] {
  const events = [
    named({ type: 'message_start', message: { content: [], usage: { input_tokens: 2 } } }),
  ]
  const count = 1 + random.below(3)
  for (let index = 0; index < count; index++) {
    if (random.below(6) === 0) {
      const content_block = { ...other(random), type: 'new_block' }
      events.push(named({ type: 'content_block_start', index, content_block }))
      for (const new_text of split(textOf(random), random)) {
        const delta = { type: 'new_delta', new_text, list: [textOf(random), { new_text }] }
        events.push(named({ type: 'content_block_delta', index, delta, note: textOf(random) }))
      }
    } else if (random.below(5) === 0) {
      events.push(
        named({ type: 'content_block_start', index, content_block: { type: 'compaction' } }),
      )
      for (const content of split(textOf(random), random)) {
        const delta = { type: 'compaction_delta', content }
        events.push(named({ type: 'content_block_delta', index, delta }))
      }
    } else if (random.below(4) === 0) {
      const content_block = { type: 'tool_use', id: 'a', name: 'ab', input: {} }
      events.push(named({ type: 'content_block_start', index, content_block }))
    } else {
      const content_block = { type: 'text', text: '' }
      events.push(named({ type: 'content_block_start', index, content_block }))
      // The text has no empty matches, so that no block becomes empty and is left out by the gateway.
      for (const text of split(`${textOf(random)}!`, random)) {
        events.push(
          named({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } }),
        )
      }
    }
    events.push(named({ type: 'content_block_stop', index }))
  }
  for (const text of split(textOf(random), random)) {
    events.push(named({ type: 'message_delta', delta: { stop_details: { explanation: text } } }))
  }
  events.push(
    named({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { output_tokens: 9 },
    }),
  )
  return [...events, named({ type: 'message_stop' })]
}

function responses(random: Random, other: typeof anyObject): SentEvent[] {
  let sequence_number = 0
  const events: SentEvent[] = []
  const send = (body: Json) =>
    void events.push(named({ ...body, sequence_number: sequence_number++ }))
  send({ type: 'response.created', response: { output: [] } })
  const output: Json[] = []
  const items = 1 + random.below(2)
  for (let output_index = 0; output_index < items; output_index++) {
    const content: Json[] = []
    const item = { type: 'message', id: `i${output_index}`, content }
    send({ type: 'response.output_item.added', output_index, item: { ...item, content: [] } })
    if (random.below(4) === 0) {
      const code = textOf(random)
      const type = random.of(['response.new_text', 'response.function_call_arguments'])
      for (const delta of split(code, random)) send({ type: `${type}.delta`, output_index, delta })
      send({ type: `${type}.done`, output_index, code, arguments: code, new: other(random) })
    }
    if (random.below(3) === 0) {
      const type = random.of([
        'response.shell_call_output_content.delta',
        'response.new',
        'response.new.delta',
      ])
      for (const stdout of split(textOf(random), random)) {
        const delta = { stdout, stderr: random.below(3) === 0 ? stdout : '' }
        send({
          type,
          output_index,
          command_index: 0,
          [type === 'response.new.delta' ? 'new' : 'delta']: delta,
        })
      }
      if (random.below(2) === 0) send({ type: 'response.shell.done', output_index })
    }
    const parts = 1 + random.below(2)
    for (let content_index = 0; content_index < parts; content_index++) {
      const text = textOf(random)
      const at = { output_index, content_index, item_id: item.id }
      const part = { type: 'output_text', text, annotations: [] }
      send({ type: 'response.content_part.added', ...at, part: { ...part, text: '' } })
      for (const delta of split(text, random))
        send({ type: 'response.output_text.delta', ...at, delta })
      send({ type: 'response.output_text.done', ...at, text })
      send({ type: 'response.content_part.done', ...at, part })
      content.push(part)
    }
    send({ type: 'response.output_item.done', output_index, item })
    output.push(item)
  }
  send({
    type: 'response.completed',
    response: { output, usage: { input_tokens: 4, output_tokens: 3 } },
  })
  return events
}

/** `other` makes the objects in fields and events that no list of guards has. */
export function streamOf(
  format: Exclude<Format, 'Embeddings'>,
  random: Random,
  other = anyObject,
): SentEvent[] {
  return { Completions: completions, Messages: messages, Responses: responses }[format](
    random,
    other,
  )
}

/** Writes events as bytes, in one of the ways that servers do. */
export function sse(events: readonly SentEvent[], random: Random): string {
  const end = random.of(['\n', '\r\n', '\r'])
  const space = random.of(['', ' '])
  return events
    .map(({ event, data }) => {
      const name = event === undefined ? '' : `event:${space}${event}${end}`
      const comment = random.below(9) === 0 ? `: bob@example.com${end}${end}` : ''
      return `${comment}${name}data:${space}${data}${end}${end}`
    })
    .join('')
}

export function readSse(text: string): SentEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && block !== ':')
    .map((block) => ({
      event: /^event: ([^\n]*)$/m.exec(block)?.[1],
      data: /^data: ([^\n]*)$/m.exec(block)?.[1] ?? '',
    }))
}

/**
 * The texts that a client joins from deltas, by part; everything else of the events, in order. Numbers of events are
 * left out, because what masks a stream may add events.
 */
export function received(events: readonly SentEvent[]) {
  const texts: Record<string, string> = {}
  const rest: unknown[] = []
  /** By choice: the end of one may come before that of another, whose text is undecided. */
  const ends: Record<number, unknown[]> = {}
  const add = (key: string, text: unknown) => {
    if (typeof text === 'string') texts[key] = (texts[key] ?? '') + text
  }
  for (const { event, data } of events) {
    const body = data === '[DONE]' ? data : { ...JSON.parse(data), sequence_number: undefined }
    // Texts inside of deltas end later than the events between them.
    const before = Object.entries(texts).filter(([key]) => !key.startsWith('response.'))
    const join = (key: string, holder: Json): void => {
      for (const [field, value] of Object.entries(holder)) {
        // An event that is added has only the item of a list that goes on.
        const name = Array.isArray(holder) ? '*' : field
        if (typeof value === 'object' && value !== null) join(`${key}.${name}`, value as Json)
        else if (!isLabel(holder, field, responseScope)) add(`${key}.${name}`, value)
      }
    }
    for (const choice of body.choices ?? []) {
      const { content, ...others } = choice.delta ?? {}
      const parts = Array.isArray(content) ? content : undefined
      for (const { text, ...beside } of parts ?? []) {
        add(`${choice.index}/content`, text)
        join(`${choice.index} content`, [beside] as unknown as Json)
      }
      for (const [name, value] of Object.entries(parts ? others : { content, ...others })) {
        if (name !== 'audio' && typeof value === 'object')
          join(`${choice.index} ${name}`, value as Json)
      }
      for (const name of ['content', 'refusal'])
        add(`${choice.index}/${name}`, choice.delta?.[name])
      add(`${choice.index}/audio`, choice.delta?.audio?.transcript)
      add(`${choice.index}/text`, choice.text)
      if (choice.finish_reason !== 'stop') continue
      ends[choice.index] = [...(ends[choice.index] ?? []), { ...choice, delta: {}, text: '' }]
    }
    const { type, delta } = body
    if (typeof delta === 'object') join(`${type} ${body.index ?? body.output_index}`, delta)
    if (type === 'response.new.delta') join(`${type} ${body.output_index}`, body.new)
    if (type === 'content_block_delta' || typeof delta === 'object') continue
    else if (type?.endsWith('.delta')) {
      add(`${body.output_index}/${body.content_index}`, delta)
    } else if (body.choices === undefined) rest.push({ event, body, before })
  }
  return { texts, ends, rest }
}
