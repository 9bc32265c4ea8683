/** Streamed chat completions, read from a provider and written for a client. */
import {
  type AnswerEvent,
  type AnswerReader,
  type AnswerWriter,
  laterUsage,
  type StopReason,
  type StreamEvent,
  type Usage,
} from '../../chat.ts'
import {
  compact,
  field,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { CallIndexes } from './call-indexes.ts'
import {
  readCompletionsError,
  readFinishReason,
  writeCompletionsError,
  writeFinishReason,
  writeMadeImage,
} from './response.ts'
import { ThinkingKeeper, writeThinkingBlocks } from './thinking.ts'
import { readCompletionsUsage, writeCompletionsUsage } from './usage.ts'

/** What is known of a tool call while its pieces come. */
interface OpenCall {
  readonly index: number
  /** Arguments that came before the name. */
  early: string
  isNamed: boolean
  id: string | undefined
}

/** Text is block 0, thinking block 1, the tool calls follow in the order of their first piece. */
const textIndex = 0
const thinkingIndex = 1
const firstCall = 2

export class CompletionsReader implements AnswerReader {
  readonly #calls = new Map<number, OpenCall>()
  readonly #indexes = new CallIndexes()
  #isStarted = false
  #hasStopped = false
  #isEnded = false

  read({ data }: StreamEvent): readonly AnswerEvent[] {
    if (data === '[DONE]') return this.#end()
    const chunk = parseJson(data)
    if (chunk === undefined) throw new LlmError(502, 'an event of the answer is not JSON')
    if (field(chunk, 'error') != null) {
      return [{ type: 'error', error: readCompletionsError(502, data) }]
    }
    const events: AnswerEvent[] = []
    if (!this.#isStarted) {
      this.#isStarted = true
      const id = stringAt(chunk, 'id') ?? ''
      events.push({ type: 'start', id, model: stringAt(chunk, 'model') ?? '' })
    }
    const choice = listAt(chunk, 'choices').find((one) => (numberAt(one, 'index') ?? 0) === 0)
    if (choice !== undefined) this.#readChoice(choice, events)
    const usage = readCompletionsUsage(field(chunk, 'usage'))
    if (usage !== undefined) events.push({ type: 'usage', usage })
    return events
  }

  /** Some providers close the stream after the stop reason, without the last event. */
  finish(): readonly AnswerEvent[] {
    return this.#hasStopped ? this.#end() : []
  }

  #end(): readonly AnswerEvent[] {
    if (this.#isEnded) return []
    this.#isEnded = true
    return [{ type: 'end' }]
  }

  #readChoice(choice: unknown, events: AnswerEvent[]): void {
    const delta = objectAt(choice, 'delta')
    const thinking = stringAt(delta, 'reasoning_content')
    if (thinking) events.push({ type: 'thinking', index: thinkingIndex, text: thinking })
    const text = stringAt(delta, 'content') ?? stringAt(delta, 'refusal')
    if (text) events.push({ type: 'text', index: textIndex, text })
    for (const call of listAt(delta, 'tool_calls')) this.#readCall(call, events)
    const reason = stringAt(choice, 'finish_reason')
    if (reason === undefined) return
    this.#hasStopped = true
    events.push({ type: 'stop', reason: readFinishReason(reason) })
  }

  #readCall(call: unknown, events: AnswerEvent[]): void {
    const id = stringAt(call, 'id')
    const position = this.#indexes.resolve(numberAt(call, 'index') ?? 0, id)
    let open = this.#calls.get(position)
    if (open === undefined) {
      const index = firstCall + this.#calls.size
      open = { index, early: '', isNamed: false, id: undefined }
      this.#calls.set(position, open)
    }
    open.id ??= id
    const made = objectAt(call, 'function')
    const name = stringAt(made, 'name')
    const json = stringAt(made, 'arguments') ?? ''
    const { index } = open
    if (!open.isNamed && !name) {
      open.early += json
      return
    }
    if (!open.isNamed && name) {
      open.isNamed = true
      events.push({ type: 'tool-start', index, id: open.id ?? `tool_call_${position}`, name })
    }
    const all = open.early + json
    open.early = ''
    if (all !== '') events.push({ type: 'tool-input', index, json: all })
  }
}

type StartedCall = Extract<AnswerEvent, { type: 'tool-start' }>

interface WrittenCall {
  /** Dense index, as the client counts. */
  readonly index: number
  readonly isCustom: boolean
  isEmpty: boolean
}

export class CompletionsWriter implements AnswerWriter {
  readonly #created: number
  #id = ''
  #model = ''
  #hasRole = false
  readonly #thinking = new ThinkingKeeper()
  readonly #wantsUsage: boolean
  /** As last reported; the client gets it once, at the end. */
  #usage: Usage | undefined
  /** Number of images so far. */
  #images = 0
  /** By the index of the block. */
  readonly #calls = new Map<number, WrittenCall>()

  /** `created`: seconds since the epoch. `wantsUsage`: did the client ask for it? */
  constructor(created: number, wantsUsage: boolean) {
    this.#created = created
    this.#wantsUsage = wantsUsage
  }

  write(event: AnswerEvent): readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        this.#id = event.id
        this.#model = event.model
        this.#usage = event.usage
        return []
      case 'text':
        return [this.#delta({ content: event.text })]
      case 'thinking':
        this.#thinking.add(event.index, event.text, event.signature)
        return [
          this.#delta(
            compact({
              reasoning_content: event.text === '' ? undefined : event.text,
              reasoning_signature: event.signature,
            }),
          ),
        ]
      case 'redacted-thinking':
        this.#thinking.addRedacted(event.index, event.data)
        return []
      case 'made-image':
        return [this.#delta({ images: [writeMadeImage(event, this.#images++)] })]
      case 'tool-start':
        return [this.#startCall(event.index, event)]
      case 'tool-input':
        return this.#argue(event.index, event.json)
      case 'block-stop':
        return this.#stopBlock(event.index)
      case 'stop': {
        const thinking_blocks = writeThinkingBlocks(this.#thinking.blocks())
        return [this.#chunk(compact({ thinking_blocks }), event.reason)]
      }
      case 'usage':
        this.#usage = laterUsage(this.#usage, event.usage)
        return []
      case 'error': {
        const data = JSON.stringify(writeCompletionsError(event.error))
        return [...this.#usageChunk(), { event: undefined, data }]
      }
      case 'end':
        return []
    }
  }

  finish(isClean: boolean): readonly StreamEvent[] {
    return isClean ? [...this.#usageChunk(), { event: undefined, data: '[DONE]' }] : []
  }

  #startCall(block: number, { id, name, custom }: StartedCall): StreamEvent {
    const index = this.#calls.size
    const isCustom = custom === true
    this.#calls.set(block, { index, isCustom, isEmpty: true })
    const call = isCustom
      ? { index, id, type: 'custom', custom: { name, input: '' } }
      : { index, id, type: 'function', function: { name, arguments: '' } }
    return this.#delta({ tool_calls: [call] })
  }

  #argue(block: number, text: string): StreamEvent[] {
    const call = this.#calls.get(block)
    if (call === undefined || text === '') return []
    call.isEmpty = false
    const piece = call.isCustom ? { custom: { input: text } } : { function: { arguments: text } }
    return [this.#delta({ tool_calls: [{ index: call.index, ...piece }] })]
  }

  /** Clients parse the arguments: a call without any gets an empty object. */
  #stopBlock(block: number): StreamEvent[] {
    const call = this.#calls.get(block)
    return call?.isEmpty === true && !call.isCustom ? this.#argue(block, '{}') : []
  }

  #delta(delta: JsonObject): StreamEvent {
    return this.#chunk(delta, undefined)
  }

  #chunk(delta: JsonObject, finish: StopReason | undefined): StreamEvent {
    const role = this.#hasRole ? undefined : 'assistant'
    this.#hasRole = true
    const reason = finish === undefined ? null : writeFinishReason(finish)
    const choice = {
      index: 0,
      delta: compact({ role, ...delta }),
      logprobs: null,
      finish_reason: reason,
    }
    return this.#event({ choices: [choice] })
  }

  #usageChunk(): StreamEvent[] {
    const usage = this.#usage
    if (!this.#wantsUsage || usage === undefined) return []
    this.#usage = undefined
    return [this.#event({ choices: [], usage: writeCompletionsUsage(usage) })]
  }

  #event(more: JsonObject): StreamEvent {
    const chunk = {
      id: this.#id,
      object: 'chat.completion.chunk',
      created: this.#created,
      model: this.#model,
      ...more,
    }
    return { event: undefined, data: JSON.stringify(chunk) }
  }
}
