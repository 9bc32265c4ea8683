/** What a server sends on one connection: JSON, or events with one message each. */

import { GrowingBytes } from '../../../base/growing-bytes.ts'
import { SseEventTooLarge, SseReader } from '../../../base/sse-reader.ts'
import type { CallListener } from '../../../engine/contracts/calls.ts'
import type { GatewayError } from '../../../errors/index.ts'
import type { HeaderFields } from '../../../exchange/exchange.ts'
import type { McpEvent } from '../event-stream.ts'
import { type McpMessage, MessageRefusal, readMessage, readMessages } from '../message.ts'
import { type RefusedAnswer, TargetFailure } from './failure.ts'

/** Of an event that brought a message, or none. */
export type EventMark = Pick<McpEvent, 'id' | 'retry'>

/** Of an answer, in order: perhaps a session, perhaps a stream, messages, and one end. */
export interface AnswerListener {
  /** The server has named a session. */
  onSession?(id: string): void
  /** Messages come as they please, perhaps for a long time. */
  onStream(): void
  onMessage(message: McpMessage, mark: EventMark | undefined): void
  /** An event without a message. `type` and `data` are what it has instead. */
  onEvent(event: McpEvent): void
  /** All is told; a message without an answer was accepted. */
  onEnd(): void
  onFailure(failure: TargetFailure): void
}

/** Most bytes of one message of a server. */
const messageLimit = 32 * 1024 * 1024
/** Most bytes of a body that comes with a refusal. */
const refusalLimit = 64 * 1024
/** Headers of a refusal that clients can use. */
const passedHeaders = ['content-type', 'www-authenticate', 'retry-after']

type Mode = 'events' | 'message' | 'refusal' | 'nothing'

export class AnswerReader implements CallListener {
  readonly #listener: AnswerListener
  /** Ends the call. */
  close: () => void = () => {}
  #mode: Mode = 'nothing'
  #refused: Omit<RefusedAnswer, 'body'> | undefined
  readonly #body = new GrowingBytes()
  #isOver = false
  readonly #events = new SseReader(messageLimit, 'fail')

  constructor(listener: AnswerListener) {
    this.#listener = listener
  }

  onHead(status: number, headers: HeaderFields): void {
    const type = headers.get('content-type') ?? ''
    const coding = headers.get('content-encoding') ?? 'identity'
    if (status >= 300) {
      this.#mode = 'refusal'
      const passed = passedHeaders.flatMap((name) => headers.getAll(name).map(pairWith(name)))
      this.#refused = { status, headers: passed }
      return
    }
    const session = headers.get('mcp-session-id')
    if (session !== undefined) this.#listener.onSession?.(session)
    if (status === 202 || status === 204) return
    if (coding.toLowerCase() !== 'identity') {
      this.#fail(`the server sends content coding ${coding}, which it was not offered`)
    } else if (/^text\/event-stream\s*(;|$)/i.test(type)) {
      this.#mode = 'events'
      this.#listener.onStream()
    } else if (/^application\/json\s*(;|$)/i.test(type)) this.#mode = 'message'
    else if (type !== '' || status !== 200) this.#fail('the server sends no MCP')
  }

  onBytes(bytes: Uint8Array): void {
    if (this.#isOver || this.#mode === 'nothing') return
    if (this.#mode === 'events') this.#readEvents(bytes)
    else {
      const isRefusal = this.#mode === 'refusal'
      const room = (isRefusal ? refusalLimit : messageLimit) - this.#body.length
      if (isRefusal || bytes.length <= room) {
        this.#body.add(bytes, 0, Math.min(bytes.length, room))
      } else this.#fail('the message of the server is too large')
    }
  }

  #readEvents(bytes: Uint8Array): void {
    try {
      this.#events.push(bytes, (event) => {
        if (!this.#isOver) this.#readEvent(event)
      })
    } catch (error) {
      if (!(error instanceof SseEventTooLarge)) throw error
      this.#fail('the message of the server is too large')
    }
  }

  #readEvent(event: McpEvent): void {
    const { type, data, id, retry } = event
    if ((type !== '' && type !== 'message') || data === undefined || data === '') {
      this.#listener.onEvent(event)
      return
    }
    const mark = id === undefined && retry === undefined ? undefined : { id, retry }
    this.#guard(() => this.#listener.onMessage(readMessage(data), mark))
  }

  /** What is no message ends the answer: nothing behind it can be believed. */
  #guard(read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof MessageRefusal)) throw error
      this.#fail(`the server sends what is no MCP message: ${error.message}`)
    }
  }

  onEnd(): void {
    if (this.#isOver) return
    if (this.#mode === 'message') this.#readWhole()
    if (this.#isOver) return
    this.#isOver = true
    if (this.#refused === undefined) this.#listener.onEnd()
    else {
      const answer = { ...this.#refused, body: Buffer.from(this.#body.content) }
      this.#listener.onFailure(new TargetFailure(`the server answers ${answer.status}`, { answer }))
    }
  }

  #readWhole(): void {
    this.#guard(() => {
      const found = readMessages(decode(this.#body.content))
      for (const message of Array.isArray(found) ? found : [found]) {
        this.#listener.onMessage(message, undefined)
      }
    })
  }

  onFailure(error: GatewayError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#listener.onFailure(new TargetFailure(error.row.text, {}, error))
  }

  #fail(message: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.close()
    this.#listener.onFailure(new TargetFailure(message))
  }
}

const pairWith = (name: string) => (value: string) => [name, value] as const

/** @throws MessageRefusal */
export function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new MessageRefusal(-32700, 'the text is not UTF-8')
  }
}
