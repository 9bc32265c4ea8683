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
import { type PlacedCitation, StreamedCitations } from '../../common/citations.ts'
import type { KnownOfResponse } from '../../format.ts'
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
import { messageTexts } from './content.ts'
import { finishReasonOf } from './ending.ts'
import {
  annotationsAt,
  argumentsText,
  readCompletionsError,
  readFinishReason,
  settledStop,
  writeAnnotation,
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
  readonly #known: KnownOfResponse
  #isStarted = false
  #hasRefused = false
  #hasStopped = false
  #isEnded = false
  /** The service that the provider names, maybe in other events than the usage. */
  #service: string | undefined

  constructor(known: KnownOfResponse) {
    this.#known = known
  }

  read({ data }: StreamEvent): readonly ResponseEvent[] {
    if (data === '[DONE]') return this.#end()
    const chunk = needEvent(data)
    if (field(chunk, 'error') != null) {
      return [{ type: 'error', error: readCompletionsError(502, data) }]
    }
    const events = this.#start(chunk)
    const choice = listAt(chunk, 'choices').find((one) => (numberAt(one, 'index') ?? 0) === 0)
    if (choice !== undefined) this.#readChoice(choice, events)
    this.#service = stringAt(chunk, 'service_tier') ?? this.#service
    const usage = readCompletionsUsage(field(chunk, 'usage'), this.#service)
    if (usage !== undefined) events.push({ type: 'usage', usage })
    return events
  }

  /** Some providers close the stream after the stop reason without sending `[DONE]`. */
  finish(): readonly ResponseEvent[] {
    return this.#hasStopped ? this.#end() : []
  }

  /** Some servers begin with an event that has neither an id, nor a model, nor a choice. */
  #start(chunk: unknown): ResponseEvent[] {
    const id = stringAt(chunk, 'id')
    if (this.#isStarted || (!id && listAt(chunk, 'choices').length === 0)) return []
    this.#isStarted = true
    const { model, newId } = this.#known
    const known = stringAt(chunk, 'model') || model
    return [{ type: 'start', id: id || `chatcmpl-${newId()}`, model: known }]
  }

  #end(): readonly ResponseEvent[] {
    if (this.#isEnded) return []
    this.#isEnded = true
    return [{ type: 'end' }]
  }

  #readChoice(choice: unknown, events: ResponseEvent[]): void {
    const delta = objectAt(choice, 'delta')
    const { thinking, text, refusal } = messageTexts(delta)
    if (thinking) events.push({ type: 'thinking', index: thinkingIndex, text: thinking })
    if (text) events.push({ type: 'text', index: textIndex, text })
    for (const citation of annotationsAt(delta)) {
      events.push({ type: 'citation', index: textIndex, citation })
    }
    if (refusal) {
      this.#hasRefused = true
      events.push({ type: 'refusal', text: refusal })
    }
    for (const call of listAt(delta, 'tool_calls')) this.#readCall(call, events)
    const reason = finishReasonOf(choice)
    if (reason === undefined) return
    this.#hasStopped = true
    const had = { refuses: this.#hasRefused, calls: this.#calls.size > 0 }
    events.push({ type: 'stop', reason: settledStop(readFinishReason(reason), had) })
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
    open.id ??= id || undefined
    const called = objectAt(call, 'function')
    const name = stringAt(called, 'name')
    const json = argumentsText(called) ?? ''
    const { index } = open
    if (!open.isNamed && !name) {
      open.early += json
      return
    }
    if (!open.isNamed && name) {
      open.isNamed = true
      events.push({ type: 'tool-start', index, id: open.id ?? `call_${this.#known.newId()}`, name })
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
  readonly #citations = new StreamedCitations()
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
        this.#citations.addText(event.index, event.text)
        return [this.#delta({ content: event.text })]
      case 'citation':
        return this.#cite(this.#citations.add(event.index, event.citation))
      case 'refusal':
        return [this.#delta({ refusal: event.text })]
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
        const last = this.#delta({ thinking_blocks }, event.reason)
        return [...this.#cite(this.#citations.end()), last]
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
    if (call?.isEmpty === true && !call.isCustom) return this.#addInput(block, '{}')
    return this.#cite(this.#citations.endBlock(block))
  }

  #cite(citations: readonly PlacedCitation[]): StreamEvent[] {
    return citations.length === 0
      ? []
      : [this.#delta({ annotations: citations.map(writeAnnotation) })]
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
