/** Streamed chat completions, read from a provider and written for a client. */
import {
  laterUsage,
  type ResponseContext,
  type ResponseEvent,
  type ResponseEventReader,
  type ResponseEventWriter,
  type StopReason,
  type StreamEvent,
  type Usage,
} from '../../chat.ts'
import {
  compact,
  field,
  type JsonObject,
  listAt,
  needEvent,
  numberAt,
  objectAt,
  stringAt,
} from '../../json/json.ts'
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

/** A tool call whose pieces are arriving. */
interface OpenCall {
  readonly index: number
  /** Arguments that arrived before the name. */
  early: string
  isNamed: boolean
  id: string | undefined
}

/** Block indexes: text is 0 and thinking is 1; tool calls follow in the order of their first pieces. */
const textIndex = 0
const thinkingIndex = 1
const firstCallIndex = 2

export class CompletionsReader implements ResponseEventReader {
  readonly #calls = new Map<number, OpenCall>()
  readonly #indexes = new CallIndexes()
  #isStarted = false
  #hasStopped = false
  #isEnded = false

  read({ data }: StreamEvent): readonly ResponseEvent[] {
    if (data === '[DONE]') return this.#end()
    const chunk = needEvent(data)
    if (field(chunk, 'error') != null) {
      return [{ type: 'error', error: readCompletionsError(502, data) }]
    }
    const events: ResponseEvent[] = []
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

  /** Some providers close the stream after the stop reason without sending `[DONE]`. */
  finish(): readonly ResponseEvent[] {
    return this.#hasStopped ? this.#end() : []
  }

  #end(): readonly ResponseEvent[] {
    if (this.#isEnded) return []
    this.#isEnded = true
    return [{ type: 'end' }]
  }

  #readChoice(choice: unknown, events: ResponseEvent[]): void {
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

  #readCall(call: unknown, events: ResponseEvent[]): void {
    const id = stringAt(call, 'id')
    const position = this.#indexes.resolve(numberAt(call, 'index') ?? 0, id)
    let open = this.#calls.get(position)
    if (open === undefined) {
      const index = firstCallIndex + this.#calls.size
      open = { index, early: '', isNamed: false, id: undefined }
      this.#calls.set(position, open)
    }
    open.id ??= id
    const called = objectAt(call, 'function')
    const name = stringAt(called, 'name')
    const json = stringAt(called, 'arguments') ?? ''
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

type StartedCall = Extract<ResponseEvent, { type: 'tool-start' }>

interface WrittenCall {
  /** Index of the call for the client, counted without gaps. */
  readonly index: number
  readonly isCustom: boolean
  isEmpty: boolean
}

export class CompletionsWriter implements ResponseEventWriter {
  readonly #created: number
  #id = ''
  #model = ''
  #hasRole = false
  readonly #thinking = new ThinkingKeeper()
  /** True if the client asked for the usage. */
  readonly #wantsUsage: boolean
  /** Last usage that the provider reported; sent to the client once, at the end. */
  #usage: Usage | undefined
  /** Number of images written so far. */
  #images = 0
  /** Written tool calls, by the index of the block. */
  readonly #calls = new Map<number, WrittenCall>()

  constructor({ created }: ResponseContext, wantsUsage: boolean) {
    this.#created = created
    this.#wantsUsage = wantsUsage
  }

  write(event: ResponseEvent): readonly StreamEvent[] {
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
          this.#delta({
            reasoning_content: event.text || undefined,
            reasoning_signature: event.signature,
          }),
        ]
      case 'redacted-thinking':
        this.#thinking.addRedacted(event.index, event.data)
        return []
      case 'made-image':
        return [this.#delta({ images: [writeMadeImage(event, this.#images++)] })]
      case 'tool-start':
        return [this.#startCall(event)]
      case 'tool-input':
        return this.#addInput(event.index, event.json)
      case 'block-stop':
        return this.#stopBlock(event.index)
      case 'stop': {
        const thinking_blocks = writeThinkingBlocks(this.#thinking.blocks())
        return [this.#delta({ thinking_blocks }, event.reason)]
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

  #startCall({ index: block, id, name, custom: isCustom = false }: StartedCall): StreamEvent {
    const index = this.#calls.size
    this.#calls.set(block, { index, isCustom, isEmpty: true })
    const call = isCustom
      ? { index, id, type: 'custom', custom: { name, input: '' } }
      : { index, id, type: 'function', function: { name, arguments: '' } }
    return this.#delta({ tool_calls: [call] })
  }

  #addInput(block: number, text: string): StreamEvent[] {
    const call = this.#calls.get(block)
    if (call === undefined || text === '') return []
    call.isEmpty = false
    const piece = call.isCustom ? { custom: { input: text } } : { function: { arguments: text } }
    return [this.#delta({ tool_calls: [{ index: call.index, ...piece }] })]
  }

  /** Clients parse the arguments, so a call without arguments gets an empty object. */
  #stopBlock(block: number): StreamEvent[] {
    const call = this.#calls.get(block)
    return call?.isEmpty === true && !call.isCustom ? this.#addInput(block, '{}') : []
  }

  #delta(fields: JsonObject, stop?: StopReason): StreamEvent {
    const role = this.#hasRole ? undefined : 'assistant'
    this.#hasRole = true
    const delta = compact({ role, ...fields })
    const finish_reason = stop === undefined ? null : writeFinishReason(stop)
    return this.#event({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] })
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
