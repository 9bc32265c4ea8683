/**
 * Streamed answers in the responses format, written for a client. Every event has a number; items
 * and parts are added, filled and done, and the last event holds the whole response again.
 */
import {
  type AnswerEvent,
  type AnswerWriter,
  laterUsage,
  type MadeImageBlock,
  type StopReason,
  type StreamEvent,
  type Usage,
} from '../../chat.ts'
import type { JsonObject } from '../../json.ts'
import { type Proof, reasoningItem, summaryPart } from './reasoning.ts'
import {
  callItem,
  callPrefix,
  type ItemStatus,
  imageItem,
  messageItem,
  outcomeOf,
  responseObject,
  writeResponsesUsage,
} from './response.ts'

type ItemKind = 'reasoning' | 'message' | 'image' | 'call' | 'custom-call'

interface OpenItem {
  readonly kind: ItemKind
  readonly id: string
  /** Position in the output. */
  readonly position: number
  /** Text of a message or of thinking; arguments of a call. */
  text: string
  /** What the provider added to its thinking. */
  proof: Proof
  readonly callId: string
  readonly name: string
  isDone: boolean
  readonly image?: MadeImageBlock
}

type StartedCall = Extract<AnswerEvent, { type: 'tool-start' }>

export class ResponsesWriter implements AnswerWriter {
  readonly #created: number
  readonly #newId: () => string
  readonly #items: OpenItem[] = []
  /** By the index of the common form; all texts share one message. */
  readonly #byIndex = new Map<number, OpenItem>()
  #message: OpenItem | undefined
  #id = ''
  #model = ''
  #sequence = 0
  #isStarted = false
  #isFailed = false
  #stop: StopReason = 'end'
  #usage: Usage | undefined

  /** `created`: seconds since the epoch. `newId` gives a random part for ids. */
  constructor(created: number, newId: () => string) {
    this.#created = created
    this.#newId = newId
  }

  write(event: AnswerEvent): readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        this.#usage = event.usage
        return this.#start(event.model)
      case 'text':
        return event.text === '' ? [] : this.#text(event.text)
      case 'made-image':
        return this.#image(event)
      case 'tool-start':
        return this.#call(event.index, event)
      case 'tool-input':
        return this.#argue(event.index, event.json)
      case 'block-stop': {
        const item = this.#byIndex.get(event.index)
        return item === undefined ? [] : this.#done(item, 'completed')
      }
      case 'stop':
        this.#stop = event.reason
        return []
      case 'usage':
        this.#usage = laterUsage(this.#usage, event.usage)
        return []
      case 'error':
        return this.#fail(event.error.code ?? event.error.kind ?? null, event.error.message)
      case 'thinking':
        return this.#think(event.index, event.text, event.signature)
      case 'redacted-thinking': {
        const { item, events } = this.#reasoning(event.index)
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
    const status: ItemStatus = outcome.status === 'incomplete' ? 'incomplete' : 'completed'
    const done = this.#items.flatMap((item) => this.#done(item, status))
    const more = {
      ...outcome,
      output: this.#output(status),
      usage: writeResponsesUsage(this.#usage),
    }
    const type = `response.${outcome.status}`
    return [...done, this.#event(type, { response: this.#response(more) })]
  }

  #response(more: JsonObject): JsonObject {
    return responseObject({ id: this.#id, model: this.#model, created: this.#created }, more)
  }

  #output(status: ItemStatus): JsonObject[] {
    return this.#items.map((item) => this.#itemOf(item, status))
  }

  #itemOf(item: OpenItem, status: ItemStatus): JsonObject {
    const { kind, id, text, proof, callId, name, image } = item
    if (kind === 'image') return imageItem(id, image)
    if (kind === 'reasoning') return reasoningItem(id, text, proof)
    if (kind === 'message') return messageItem(id, text, status)
    const custom = kind === 'custom-call'
    const args = text === '' && !custom ? '{}' : text
    return callItem({ id, callId, name, args, custom }, status)
  }

  #start(model: string): StreamEvent[] {
    this.#isStarted = true
    this.#id = `resp_${this.#newId()}`
    this.#model = model
    const running = {
      status: 'in_progress',
      output: [],
      usage: null,
      error: null,
      incomplete_details: null,
    }
    return ['response.created', 'response.in_progress'].map((type) =>
      this.#event(type, { response: this.#response(running) }),
    )
  }

  #add(kind: OpenItem['kind'], id: string, callId: string, name: string): OpenItem {
    const position = this.#items.length
    const item: OpenItem = { kind, id, position, text: '', proof: {}, callId, name, isDone: false }
    this.#items.push(item)
    return item
  }

  #reasoning(index: number): { item: OpenItem; events: StreamEvent[] } {
    const known = this.#byIndex.get(index)
    if (known !== undefined) return { item: known, events: [] }
    const item = this.#add('reasoning', `rs_${this.#newId()}`, '', '')
    this.#byIndex.set(index, item)
    const empty = { id: item.id, type: 'reasoning', summary: [] }
    const added = { output_index: item.position, item: empty }
    return { item, events: [this.#event('response.output_item.added', added)] }
  }

  #think(index: number, text: string, signature: string | undefined): StreamEvent[] {
    const { item, events } = this.#reasoning(index)
    if (signature !== undefined)
      item.proof = { signature: (item.proof.signature ?? '') + signature }
    if (text === '') return events
    if (item.text === '') {
      const part = this.#at(item, { summary_index: 0, part: summaryPart('') })
      events.push(this.#event('response.reasoning_summary_part.added', part))
    }
    item.text += text
    const delta = this.#at(item, { summary_index: 0, delta: text })
    events.push(this.#event('response.reasoning_summary_text.delta', delta))
    return events
  }

  #thought(item: OpenItem): StreamEvent[] {
    const { text } = item
    if (text === '') return []
    const part = summaryPart(text)
    return [
      this.#event(
        'response.reasoning_summary_text.done',
        this.#at(item, { summary_index: 0, text }),
      ),
      this.#event(
        'response.reasoning_summary_part.done',
        this.#at(item, { summary_index: 0, part }),
      ),
    ]
  }

  #text(text: string): StreamEvent[] {
    const events: StreamEvent[] = []
    let item = this.#message
    if (item === undefined) {
      item = this.#add('message', `msg_${this.#newId()}`, '', '')
      this.#message = item
      const { id, position } = item
      const part = { type: 'output_text', text: '', annotations: [], logprobs: [] }
      events.push(
        this.#event('response.output_item.added', {
          output_index: position,
          item: messageItem(id, '', 'in_progress'),
        }),
        this.#event('response.content_part.added', this.#at(item, { content_index: 0, part })),
      )
    }
    item.text += text
    const delta = this.#at(item, { content_index: 0, delta: text, logprobs: [] })
    events.push(this.#event('response.output_text.delta', delta))
    return events
  }

  /** It comes whole. */
  #image(image: MadeImageBlock): StreamEvent[] {
    const id = `ig_${this.#newId()}`
    const position = this.#items.length
    const more = { text: '', proof: {}, callId: '', name: '', isDone: true, image }
    const item: OpenItem = { kind: 'image', id, position, ...more }
    this.#items.push(item)
    const added = { output_index: position, item: imageItem(id, undefined) }
    return [
      this.#event('response.output_item.added', added),
      this.#event('response.image_generation_call.in_progress', this.#at(item, {})),
      this.#event('response.image_generation_call.completed', this.#at(item, {})),
      this.#event('response.output_item.done', {
        output_index: position,
        item: imageItem(id, image),
      }),
    ]
  }

  #call(index: number, { id: callId, name, custom = false }: StartedCall): StreamEvent[] {
    const id = `${callPrefix(custom)}_${this.#newId()}`
    const item = this.#add(custom ? 'custom-call' : 'call', id, callId, name)
    this.#byIndex.set(index, item)
    return [
      this.#event('response.output_item.added', {
        output_index: item.position,
        item: callItem({ id, callId, name, args: '', custom }, 'in_progress'),
      }),
    ]
  }

  #argue(index: number, text: string): StreamEvent[] {
    const item = this.#byIndex.get(index)
    if (item === undefined || text === '') return []
    item.text += text
    const type =
      item.kind === 'custom-call'
        ? 'response.custom_tool_call_input.delta'
        : 'response.function_call_arguments.delta'
    return [this.#event(type, this.#at(item, { delta: text }))]
  }

  #done(item: OpenItem, status: ItemStatus): StreamEvent[] {
    if (item.isDone) return []
    item.isDone = true
    const whole = { output_index: item.position, item: this.#itemOf(item, status) }
    const last = this.#event.bind(this, 'response.output_item.done', whole)
    if (item.kind === 'reasoning') return [...this.#thought(item), last()]
    if (item.kind === 'custom-call') {
      const done = this.#at(item, { input: item.text })
      return [this.#event('response.custom_tool_call_input.done', done), last()]
    }
    if (item.kind === 'call') {
      const args = item.text === '' ? '{}' : item.text
      const done = this.#at(item, { arguments: args, name: item.name })
      return [this.#event('response.function_call_arguments.done', done), last()]
    }
    const { text } = item
    const part = { type: 'output_text', text, annotations: [], logprobs: [] }
    return [
      this.#event(
        'response.output_text.done',
        this.#at(item, { content_index: 0, text, logprobs: [] }),
      ),
      this.#event('response.content_part.done', this.#at(item, { content_index: 0, part })),
      last(),
    ]
  }

  #fail(code: string | null, message: string): StreamEvent[] {
    this.#isFailed = true
    const error = this.#event('error', { code, message, param: null })
    if (!this.#isStarted) return [error]
    const told = { code: code ?? 'server_error', message }
    const output = this.#output('incomplete')
    const usage = writeResponsesUsage(this.#usage)
    const more = { status: 'failed', error: told, incomplete_details: null, output, usage }
    return [error, this.#event('response.failed', { response: this.#response(more) })]
  }

  #at({ id, position }: OpenItem, more: JsonObject): JsonObject {
    return { item_id: id, output_index: position, ...more }
  }

  #event(type: string, more: JsonObject): StreamEvent {
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...more })
    return { event: type, data }
  }
}
