/** The output of a model for expressions: texts and tool calls, read in the client's format. */
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import {
  field,
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
  utf8Text,
} from '../json/json.ts'
import { messageTexts } from '../mask/slots.ts'
import { eventReaders } from '../mask/stream-texts.ts'

interface OutputCall {
  id: string
  name: string
  /** JSON as the model wrote it, or the text for a custom tool. */
  arguments: string
}

export interface ModelOutput {
  /** One text for each choice or message. */
  readonly completion: readonly string[]
  readonly toolCalls: readonly Readonly<OutputCall>[]
}

/**
 * The output in a whole answer, which is read only if an expression uses it. An object literal with getters
 * would make V8 keep the body of every answer until the next full collection, as part of the object's shape.
 */
export class WholeOutput implements ModelOutput {
  readonly #answer: JsonObject | Buffer
  readonly #format: ChatFormat

  /** `answer` is the body of the answer, parsed or as bytes. */
  constructor(answer: JsonObject | Buffer, format: ChatFormat) {
    this.#answer = answer
    this.#format = format
  }

  get #body(): JsonObject {
    const answer = Buffer.isBuffer(this.#answer) ? parseJson(utf8Text(this.#answer)) : this.#answer
    return isObject(answer) ? answer : {}
  }

  get completion(): readonly string[] {
    return messageTexts(this.#body, this.#format)
  }

  get toolCalls(): readonly OutputCall[] {
    return callsIn(this.#body, this.#format)
  }
}

function callsIn(body: JsonObject, format: ChatFormat): OutputCall[] {
  switch (format) {
    case 'Completions':
      return listAt(body, 'choices')
        .flatMap((choice) => listAt(objectAt(choice, 'message'), 'tool_calls'))
        .map(completionsCall)
    case 'Messages':
      return listAt(body, 'content')
        .filter((block) => field(block, 'type') === 'tool_use')
        .map((block) => ({
          ...messagesCall(block),
          arguments: JSON.stringify(field(block, 'input') ?? {}),
        }))
    case 'Responses':
      return listAt(body, 'output').flatMap(responsesCall)
  }
}

const textAt = (value: unknown, name: string): string => stringAt(value, name) ?? ''

/** Reads a call, or a piece of a call, of a function or of a custom tool, which takes text. */
function completionsCall(call: unknown): OutputCall {
  const custom = objectAt(call, 'custom')
  const called = custom ?? objectAt(call, 'function')
  const input = textAt(called, custom === undefined ? 'arguments' : 'input')
  return { id: textAt(call, 'id'), name: textAt(called, 'name'), arguments: input }
}

const messagesCall = (block: unknown): OutputCall => ({
  id: textAt(block, 'id'),
  name: textAt(block, 'name'),
  arguments: '',
})

/** Name of the field with the input, by the type of an item. */
const inputFields = new Map<unknown, string>([
  ['function_call', 'arguments'],
  ['custom_tool_call', 'input'],
])

function responsesCall(item: unknown): OutputCall[] {
  const input = inputFields.get(field(item, 'type'))
  if (input === undefined) return []
  const id = textAt(item, 'call_id')
  return [{ id, name: textAt(item, 'name'), arguments: textAt(item, input) }]
}

/** Collects the output in a streamed answer, up to a limit. */
export class StreamedOutput implements ModelOutput {
  readonly #format: ChatFormat
  readonly #texts = new Map<string, string>()
  readonly #calls = new Map<string, OutputCall>()
  #left: number

  /** `limit` is the maximum number of characters to keep. */
  constructor(format: ChatFormat, limit: number) {
    this.#format = format
    this.#left = limit
  }

  get completion(): readonly string[] {
    return [...this.#texts.values()]
  }

  get toolCalls(): readonly OutputCall[] {
    return [...this.#calls.values()]
  }

  push({ data }: StreamEvent): void {
    const event = this.#left > 0 ? parseJson(data) : undefined
    if (!isObject(event)) return
    const { pieces = [] } = eventReaders[this.#format](event, undefined)
    for (const { part, text, isAside } of pieces) {
      if (isAside) continue
      this.#texts.set(part, (this.#texts.get(part) ?? '') + this.#take(text))
    }
    this.#readCalls(event)
  }

  #take(text: string): string {
    const taken = text.slice(0, this.#left)
    this.#left -= taken.length
    return taken
  }

  #readCalls(event: JsonObject): void {
    switch (this.#format) {
      case 'Completions':
        for (const choice of listAt(event, 'choices')) {
          const index = numberAt(choice, 'index') ?? 0
          for (const piece of listAt(objectAt(choice, 'delta'), 'tool_calls')) {
            this.#add(`${index}/${numberAt(piece, 'index') ?? 0}`, completionsCall(piece))
          }
        }
        break
      case 'Messages':
        this.#readMessages(event)
        break
      case 'Responses': {
        if (event.type !== 'response.output_item.done') break
        for (const call of responsesCall(event.item)) this.#add(call.id, call)
      }
    }
  }

  #readMessages(event: JsonObject): void {
    const key = `${numberAt(event, 'index') ?? 0}`
    const block = objectAt(event, 'content_block')
    const delta = objectAt(event, 'delta')
    if (event.type === 'content_block_start' && stringAt(block, 'type') === 'tool_use') {
      this.#add(key, messagesCall(block))
    } else if (stringAt(delta, 'type') === 'input_json_delta') {
      this.#add(key, { id: '', name: '', arguments: textAt(delta, 'partial_json') })
    }
  }

  #add(key: string, piece: OutputCall): void {
    const call = this.#calls.get(key) ?? { id: '', name: '', arguments: '' }
    call.id ||= piece.id
    call.name ||= piece.name
    call.arguments += this.#take(piece.arguments)
    this.#calls.set(key, call)
  }
}
