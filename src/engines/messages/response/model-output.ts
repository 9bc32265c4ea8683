/** The output of a model for expressions: texts and tool calls, read in the client's format. */
import type { StreamEvent } from '../chat.ts'
import type { AddCall, OutputCall } from '../common/output-call.ts'
import type { ChatFormat } from '../format.ts'
import { isObject, type JsonObject, parseJson, utf8Text } from '../json/json.ts'
import { messageTexts } from '../mask/slots.ts'

export interface ModelOutput {
  /** One text for each choice or message. */
  readonly completion: readonly string[]
  readonly toolCalls: readonly Readonly<OutputCall>[]
}

/**
 * The output in a whole response, which is read only if an expression uses it. An object literal with getters
 * would make V8 keep the body of every response until the next full collection, as part of the object's shape.
 */
export class WholeOutput implements ModelOutput {
  readonly #response: JsonObject | Buffer
  readonly #format: ChatFormat

  /** `response` is the body of the response, parsed or as bytes. */
  constructor(response: JsonObject | Buffer, format: ChatFormat) {
    this.#response = response
    this.#format = format
  }

  get #body(): JsonObject {
    const response = Buffer.isBuffer(this.#response)
      ? parseJson(utf8Text(this.#response))
      : this.#response
    return isObject(response) ? response : {}
  }

  get completion(): readonly string[] {
    return messageTexts(this.#body, this.#format)
  }

  get toolCalls(): readonly OutputCall[] {
    return this.#format.callsIn(this.#body)
  }
}

/** Collects the output in a streamed response, up to a limit. */
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
    const { pieces = [] } = this.#format.events.read(event)
    for (const { part, text, isAside } of pieces) {
      if (isAside) continue
      this.#texts.set(part, (this.#texts.get(part) ?? '') + this.#take(text))
    }
    this.#format.events.addCalls(event, this.#add)
  }

  #take(text: string): string {
    const taken = text.slice(0, this.#left)
    this.#left -= taken.length
    return taken
  }

  readonly #add: AddCall = (key, piece) => {
    const call = this.#calls.get(key) ?? { id: '', name: '', arguments: '' }
    call.id ||= piece.id
    call.name ||= piece.name
    call.arguments += this.#take(piece.arguments)
    this.#calls.set(key, call)
  }
}
