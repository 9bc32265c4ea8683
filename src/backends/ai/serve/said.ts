/** What a model has said, for whoever writes it down: texts and calls of tools, in the client's format. */
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { answerTexts } from '../guards/slots.ts'
import { eventReaders } from '../guards/stream-texts.ts'
import {
  field,
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../json.ts'

/** A call as the model has written it. */
interface SaidCall {
  id: string
  name: string
  /** JSON as it came, or the text for a custom tool. */
  arguments: string
}

export interface Said {
  /** One for each choice or message. */
  readonly completion: readonly string[]
  readonly toolCalls: readonly Readonly<SaidCall>[]
}

/** Of a whole answer. */
export function saidIn(body: JsonObject, format: ChatFormat): Said {
  return {
    completion: answerTexts(body, format).map(({ content }) => content),
    toolCalls: callsIn(body, format),
  }
}

function callsIn(body: JsonObject, format: ChatFormat): SaidCall[] {
  switch (format) {
    case 'Completions':
      return listAt(body, 'choices')
        .flatMap((choice) => listAt(objectAt(choice, 'message'), 'tool_calls'))
        .map((call) => {
          const { id = '', name = '', text = '' } = calledIn(call)
          return { id, name, arguments: text }
        })
    case 'Messages':
      return listAt(body, 'content')
        .filter((block) => field(block, 'type') === 'tool_use')
        .map((block) => ({
          id: stringAt(block, 'id') ?? '',
          name: stringAt(block, 'name') ?? '',
          arguments: JSON.stringify(field(block, 'input') ?? {}),
        }))
    case 'Responses':
      return listAt(body, 'output').flatMap(toolCall)
  }
}

/** A call of chat completions, or a piece of one: of a function, or of a custom tool, which takes text. */
function calledIn(call: unknown) {
  const custom = objectAt(call, 'custom')
  const given = custom ?? objectAt(call, 'function')
  return {
    id: stringAt(call, 'id'),
    name: stringAt(given, 'name'),
    text: stringAt(given, custom === undefined ? 'arguments' : 'input'),
  }
}

/** An item of a response: the field with what the model has written, by the type of the call. */
const inputFields = new Map<unknown, string>([
  ['function_call', 'arguments'],
  ['custom_tool_call', 'input'],
])

function toolCall(item: unknown): SaidCall[] {
  const input = inputFields.get(field(item, 'type'))
  if (input === undefined) return []
  return [
    {
      id: stringAt(item, 'call_id') ?? '',
      name: stringAt(item, 'name') ?? '',
      arguments: stringAt(item, input) ?? '',
    },
  ]
}

/** Of a streamed answer, event by event, up to a bound. */
export class SaidStream implements Said {
  readonly #format: ChatFormat
  readonly #texts = new Map<string, string>()
  readonly #calls = new Map<string, SaidCall>()
  #left: number

  /** `limit`: characters that are kept. */
  constructor(format: ChatFormat, limit: number) {
    this.#format = format
    this.#left = limit
  }

  get completion(): readonly string[] {
    return [...this.#texts.values()]
  }

  get toolCalls(): readonly SaidCall[] {
    return [...this.#calls.values()]
  }

  push({ data }: StreamEvent): void {
    const event = this.#left > 0 ? parseJson(data) : undefined
    if (!isObject(event)) return
    for (const { part, text } of eventReaders[this.#format](event, undefined).pieces) {
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
            const { id, name, text } = calledIn(piece)
            this.#add(`${index}/${numberAt(piece, 'index') ?? 0}`, id, name, text)
          }
        }
        break
      case 'Messages':
        this.#readMessages(event)
        break
      case 'Responses': {
        if (event.type !== 'response.output_item.done') break
        const [call] = toolCall(event.item)
        if (call !== undefined) this.#add(call.id, call.id, call.name, call.arguments)
      }
    }
  }

  #readMessages(event: JsonObject): void {
    const key = `${numberAt(event, 'index') ?? 0}`
    const block = objectAt(event, 'content_block')
    const delta = objectAt(event, 'delta')
    if (event.type === 'content_block_start' && stringAt(block, 'type') === 'tool_use') {
      this.#add(key, stringAt(block, 'id'), stringAt(block, 'name'), undefined)
    } else if (stringAt(delta, 'type') === 'input_json_delta') {
      this.#add(key, undefined, undefined, stringAt(delta, 'partial_json'))
    }
  }

  #add(key: string, id = '', name = '', text = ''): void {
    const call = this.#calls.get(key) ?? { id: '', name: '', arguments: '' }
    call.id ||= id
    call.name ||= name
    call.arguments += this.#take(text)
    this.#calls.set(key, call)
  }
}
