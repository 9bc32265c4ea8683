/**
 * Writes streamed responses in the responses format. Every event has a sequence number. Items and parts
 * are added, extended and finished by separate events, and the last event repeats the whole response.
 */
import {
  laterUsage,
  type MadeImageBlock,
  type ResponseContext,
  type ResponseEvent,
  type ResponseEventWriter,
  type StopReason,
  type StreamEvent,
  type Usage,
} from '../../chat.ts'
import { type PlacedCitation, StreamedCitations } from '../../common/citations.ts'
import type { JsonObject } from '../../json/json.ts'
import { type Proof, reasoningItem, summaryPart } from './reasoning.ts'
import {
  type CallItem,
  callItem,
  callPrefix,
  type ItemStatus,
  imageItem,
  itemStatusOf,
  messageItem,
  outcomeOf,
  refusalItem,
  responseObject,
  textPart,
  writeAnnotation,
} from './response.ts'
import { writeResponsesUsage } from './usage.ts'

interface OpenItem {
  readonly kind: 'reasoning' | 'message' | 'refusal' | 'image' | 'call' | 'custom-call'
  readonly id: string
  /** Position of the item in the output. */
  readonly position: number
  /** Text of a message or of thinking; arguments of a call. */
  text: string
  /** Data with which the provider verifies its thinking; empty for other items. */
  proof: Proof
  /** Id and tool name of a call; empty for other items. */
  readonly call: Pick<CallItem, 'callId' | 'name' | 'namespace'>
  readonly image?: MadeImageBlock
  isDone: boolean
}

type StartedCall = Extract<ResponseEvent, { type: 'tool-start' }>

const noCall = { callId: '', name: '', namespace: undefined }

export class ResponsesWriter implements ResponseEventWriter {
  readonly #context: ResponseContext
  readonly #items: OpenItem[] = []
  /** Reasoning and call items, by block index in the common form. */
  readonly #byIndex = new Map<number, OpenItem>()
  /** The message that contains all texts. */
  #message: OpenItem | undefined
  #refusal: OpenItem | undefined
  readonly #citations = new StreamedCitations()
  /** The citations in the message. */
  readonly #cited: PlacedCitation[] = []
  #id = ''
  #model = ''
  #sequence = 0
  #isStarted = false
  #isFailed = false
  #stop: StopReason = 'end'
  #usage: Usage | undefined

  constructor(context: ResponseContext) {
    this.#context = context
  }

  write(event: ResponseEvent): readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        this.#usage = event.usage
        return this.#start(event.model)
      case 'text':
        this.#citations.addText(event.index, event.text)
        return event.text === '' ? [] : this.#writeText(event.text)
      case 'citation':
        return this.#cite(this.#citations.add(event.index, event.citation))
      case 'refusal':
        return this.#writeRefusal(event.text)
      case 'made-image':
        return this.#writeImage(event)
      case 'tool-start':
        return this.#startCall(event)
      case 'tool-input':
        return this.#writeInput(event.index, event.json)
      case 'block-stop': {
        const item = this.#byIndex.get(event.index)
        return item === undefined
          ? this.#cite(this.#citations.endBlock(event.index))
          : this.#finishItem(item, 'completed')
      }
      case 'stop':
        this.#stop = event.reason
        return this.#cite(this.#citations.end())
      case 'usage':
        this.#usage = laterUsage(this.#usage, event.usage)
        return []
      case 'error':
        return this.#fail(event.error.code ?? event.error.kind ?? null, event.error.message)
      case 'thinking':
        return this.#writeThinking(event.index, event.text, event.signature)
      case 'redacted-thinking': {
        const { item, events } = this.#reasoningAt(event.index)
        item.proof = { redacted: event.data }
        return events
      }
      case 'end':
        return []
    }
  }

  finish(isClean: boolean): readonly StreamEvent[] {
    if (!isClean || !this.#isStarted || this.#isFailed) return []
    const outcome = outcomeOf(this.#stop)
    const status = itemStatusOf(outcome)
    const done = this.#items.flatMap((item) => this.#finishItem(item, status))
    return [...done, this.#lastEvent(`response.${outcome.status}`, outcome, status)]
  }

  #responseEvent(type: string, fields: JsonObject): StreamEvent {
    const head = { id: this.#id, model: this.#model }
    return this.#event(type, { response: responseObject(head, this.#context, fields) })
  }

  #lastEvent(type: string, outcome: JsonObject, status: ItemStatus): StreamEvent {
    const output = this.#items.map((item) => writeItem(item, status, this.#cited))
    const usage = writeResponsesUsage(this.#usage)
    return this.#responseEvent(type, { ...outcome, output, usage })
  }

  #start(model: string): StreamEvent[] {
    this.#isStarted = true
    this.#id = `resp_${this.#context.newId()}`
    this.#model = model
    const running = {
      status: 'in_progress',
      output: [],
      usage: null,
      error: null,
      incomplete_details: null,
    }
    return ['response.created', 'response.in_progress'].map((type) =>
      this.#responseEvent(type, running),
    )
  }

  #add(kind: OpenItem['kind'], prefix: string, fields: Partial<OpenItem> = {}): OpenItem {
    const id = `${prefix}_${this.#context.newId()}`
    const position = this.#items.length
    const item = { kind, id, position, text: '', proof: {}, call: noCall, isDone: false, ...fields }
    this.#items.push(item)
    return item
  }

  #reasoningAt(index: number): { item: OpenItem; events: StreamEvent[] } {
    const known = this.#byIndex.get(index)
    if (known !== undefined) return { item: known, events: [] }
    const item = this.#add('reasoning', 'rs')
    this.#byIndex.set(index, item)
    const empty = { id: item.id, type: 'reasoning', summary: [] }
    return { item, events: [this.#itemEvent('added', item, empty)] }
  }

  #writeThinking(index: number, text: string, signature: string | undefined): StreamEvent[] {
    const { item, events } = this.#reasoningAt(index)
    if (signature !== undefined) {
      item.proof = { signature: (item.proof.signature ?? '') + signature }
    }
    if (text === '') return events
    if (item.text === '') {
      const part = { summary_index: 0, part: summaryPart('') }
      events.push(this.#partEvent('reasoning_summary_part.added', item, part))
    }
    item.text += text
    const delta = { summary_index: 0, delta: text }
    events.push(this.#partEvent('reasoning_summary_text.delta', item, delta))
    return events
  }

  #writeText(text: string): StreamEvent[] {
    const isNew = this.#message === undefined
    this.#message ??= this.#add('message', 'msg')
    const item = this.#message
    const added = isNew
      ? [
          this.#itemEvent('added', item, messageItem(item.id, '', 'in_progress')),
          this.#partEvent('content_part.added', item, { content_index: 0, part: textPart('') }),
        ]
      : []
    item.text += text
    const delta = { content_index: 0, delta: text, logprobs: [] }
    return [...added, this.#partEvent('output_text.delta', item, delta)]
  }

  #cite(citations: readonly PlacedCitation[]): StreamEvent[] {
    const item = this.#message
    if (item === undefined) return []
    return citations.map((citation) => {
      const annotation_index = this.#cited.push(citation) - 1
      const fields = { content_index: 0, annotation_index, annotation: writeAnnotation(citation) }
      return this.#partEvent('output_text.annotation.added', item, fields)
    })
  }

  #writeRefusal(delta: string): StreamEvent[] {
    const isNew = this.#refusal === undefined
    this.#refusal ??= this.#add('refusal', 'msg')
    const item = this.#refusal
    const part = { type: 'refusal', refusal: '' }
    const added = isNew
      ? [
          this.#itemEvent('added', item, refusalItem(item.id, '', 'in_progress')),
          this.#partEvent('content_part.added', item, { content_index: 0, part }),
        ]
      : []
    item.text += delta
    return [...added, this.#partEvent('refusal.delta', item, { content_index: 0, delta })]
  }

  /** Writes all events of an image, which arrives whole. */
  #writeImage(image: MadeImageBlock): StreamEvent[] {
    const item = this.#add('image', 'ig', { isDone: true, image })
    return [
      this.#itemEvent('added', item, imageItem(item.id, undefined)),
      this.#partEvent('image_generation_call.in_progress', item, {}),
      this.#partEvent('image_generation_call.completed', item, {}),
      this.#itemEvent('done', item, imageItem(item.id, image)),
    ]
  }

  #startCall({ index, id, name, namespace, custom = false }: StartedCall): StreamEvent[] {
    const call = { callId: id, name, namespace }
    const item = this.#add(custom ? 'custom-call' : 'call', callPrefix(custom), { call })
    this.#byIndex.set(index, item)
    const started = callItem({ id: item.id, ...call, args: '', custom }, 'in_progress')
    return [this.#itemEvent('added', item, started)]
  }

  #writeInput(index: number, text: string): StreamEvent[] {
    const item = this.#byIndex.get(index)
    if (item === undefined || text === '') return []
    item.text += text
    const type = item.kind === 'custom-call' ? 'custom_tool_call_input' : 'function_call_arguments'
    return [this.#partEvent(`${type}.delta`, item, { delta: text })]
  }

  #finishItem(item: OpenItem, status: ItemStatus): StreamEvent[] {
    if (item.isDone) return []
    item.isDone = true
    const events = this.#finishParts(item)
    return [...events, this.#itemEvent('done', item, writeItem(item, status, this.#cited))]
  }

  #finishParts(item: OpenItem): StreamEvent[] {
    const { kind, text } = item
    if (kind === 'custom-call') {
      return [this.#partEvent('custom_tool_call_input.done', item, { input: text })]
    }
    if (kind === 'call') {
      const done = { arguments: text || '{}', name: item.call.name }
      return [this.#partEvent('function_call_arguments.done', item, done)]
    }
    if (kind === 'reasoning') {
      if (text === '') return []
      const part = { summary_index: 0, part: summaryPart(text) }
      return [
        this.#partEvent('reasoning_summary_text.done', item, { summary_index: 0, text }),
        this.#partEvent('reasoning_summary_part.done', item, part),
      ]
    }
    if (kind === 'refusal') {
      const part = { type: 'refusal', refusal: text }
      return [
        this.#partEvent('refusal.done', item, { content_index: 0, refusal: text }),
        this.#partEvent('content_part.done', item, { content_index: 0, part }),
      ]
    }
    return [
      this.#partEvent('output_text.done', item, { content_index: 0, text, logprobs: [] }),
      this.#partEvent('content_part.done', item, {
        content_index: 0,
        part: textPart(text, this.#cited),
      }),
    ]
  }

  #fail(code: string | null, message: string): StreamEvent[] {
    this.#isFailed = true
    const event = this.#event('error', { code, message, param: null })
    if (!this.#isStarted) return [event]
    const error = { code: code ?? 'server_error', message }
    const outcome = { status: 'failed', error, incomplete_details: null }
    return [event, this.#lastEvent('response.failed', outcome, 'incomplete')]
  }

  /** Returns the event that an item was added or is done. */
  #itemEvent(change: 'added' | 'done', { position }: OpenItem, item: JsonObject): StreamEvent {
    return this.#event(`response.output_item.${change}`, { output_index: position, item })
  }

  /** Returns an event about a change inside an item. */
  #partEvent(type: string, { id, position }: OpenItem, fields: JsonObject): StreamEvent {
    return this.#event(`response.${type}`, { item_id: id, output_index: position, ...fields })
  }

  #event(type: string, fields: JsonObject): StreamEvent {
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...fields })
    return { event: type, data }
  }
}

function writeItem(
  item: OpenItem,
  status: ItemStatus,
  cited: readonly PlacedCitation[],
): JsonObject {
  const { kind, id, text, proof, call, image } = item
  if (kind === 'image') return imageItem(id, image)
  if (kind === 'reasoning') return reasoningItem(id, text, proof)
  if (kind === 'message') return messageItem(id, text, status, cited)
  if (kind === 'refusal') return refusalItem(id, text, status)
  const custom = kind === 'custom-call'
  return callItem({ id, ...call, args: custom ? text : text || '{}', custom }, status)
}
