/** Reads the response of a server: JSON, or events with one message each. */
import { isAscii } from 'node:buffer'
import type { CallListener } from '../../../../../engines/http/contracts/calls.ts'
import { SseEventTooLarge, SseReader } from '../../../../../engines/sse/reader.ts'
import { GrowingBytes } from '../../../../../ground/base/growing-bytes.ts'
import type { GatewayError } from '../../../../../ground/errors/index.ts'
import type { HeaderFields } from '../../../../../ground/exchange/exchange.ts'
import type { EventFields, McpEvent } from '../../event-stream.ts'
import { type McpMessage, MessageRefusal, readMessage, readMessages } from '../../message.ts'
import { type HttpErrorResponse, TargetFailure, toFailure } from './target-failure.ts'

/**
 * Receives the parts of a response in this order: the session and the start of a stream, if there are any,
 * then messages and other events, then either the end or a failure.
 */
export interface ResponseListener {
  /** Called if the server has created a session. */
  onSession?(id: string): void
  /** Called if the response is a stream of events, which may last long. */
  onStream?(): void
  onMessage?(message: McpMessage, eventFields: EventFields | undefined): void
  /** Called for each event without a message, which says nothing besides its name, its id and a time. */
  onEvent?(event: McpEvent): void
  /** Called with the address for messages, which only servers of the older transport name. */
  onEndpoint?(address: string): void
  /** Called at the end of the response. If there was no message, the server has only accepted the request. */
  onEnd(): void
  onFailure(failure: TargetFailure): void
}

/** Passes a response of the gateway itself, which is the whole response. */
export function passResponse(listener: ResponseListener, text: string): void {
  listener.onMessage?.(readMessage(text), undefined)
  listener.onEnd()
}

/** Maximum size of a message of a server. */
const maxMessageBytes = 32 * 1024 * 1024
/** Maximum size of an error body. The rest is dropped. */
const maxErrorBytes = 64 * 1024
/** Headers of an error response that are passed to clients. */
const passedHeaders = ['content-type', 'www-authenticate', 'retry-after']

type Mode = 'events' | 'message' | 'refusal' | 'nothing'

export class ResponseReader implements CallListener {
  readonly #listener: ResponseListener
  readonly #ignoresBody: boolean
  /** The call, which is closed if the response is not valid. Set by the code that starts it. */
  call: { close(): void } | undefined
  #mode: Mode = 'nothing'
  #refused: Omit<HttpErrorResponse, 'body'> | undefined
  /** The body, if it came in one piece so far. */
  #piece: Uint8Array | undefined
  #pieces: GrowingBytes | undefined
  #isOver = false
  #events: SseReader | undefined

  /**
   * If `ignoresBody`, the body of a successful response is not read, whatever it is. `onStream` is called at its
   * start.
   */
  constructor(listener: ResponseListener, ignoresBody = false) {
    this.#listener = listener
    this.#ignoresBody = ignoresBody
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
    if (this.#ignoresBody) {
      this.#listener.onStream?.()
      return
    }
    const session = headers.get('mcp-session-id')
    if (session !== undefined) this.#listener.onSession?.(session)
    if (status === 202 || status === 204) return
    if (coding.toLowerCase() !== 'identity') {
      this.#fail(`the server sends content coding ${coding}, which it was not offered`)
    } else if (/^text\/event-stream\s*(;|$)/i.test(type)) {
      this.#mode = 'events'
      this.#listener.onStream?.()
    } else if (/^application\/json\s*(;|$)/i.test(type)) this.#mode = 'message'
    else if (type !== '' || status !== 200) this.#fail('the server sends no MCP')
  }

  onBytes(bytes: Uint8Array): void {
    if (this.#isOver || this.#mode === 'nothing') return
    if (this.#mode === 'events') this.#readEvents(bytes)
    else {
      const isRefusal = this.#mode === 'refusal'
      const room = (isRefusal ? maxErrorBytes : maxMessageBytes) - this.#body.length
      if (bytes.length <= room) this.#add(bytes)
      else if (isRefusal) this.#add(bytes.subarray(0, room))
      else this.#fail('the message of the server is too large')
    }
  }

  get #body(): Uint8Array {
    return this.#pieces?.content ?? this.#piece ?? none
  }

  #add(bytes: Uint8Array): void {
    if (this.#piece === undefined) {
      this.#piece = bytes
      return
    }
    if (this.#pieces === undefined) {
      this.#pieces = new GrowingBytes()
      this.#pieces.add(this.#piece, 0, this.#piece.length)
    }
    this.#pieces.add(bytes, 0, bytes.length)
  }

  #readEvents(bytes: Uint8Array): void {
    this.#events ??= new SseReader(maxMessageBytes, 'fail')
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
    const isMessage = type === '' || type === 'message'
    if (!isMessage || data === undefined || data === '') {
      if (type === 'endpoint' && data !== undefined) this.#listener.onEndpoint?.(data)
      // Nothing checks the data of other events, so a message in it must not reach the client.
      this.#listener.onEvent?.(isMessage || data === undefined ? event : { ...event, data: '' })
      return
    }
    const eventFields = id === undefined && retry === undefined ? undefined : { id, retry }
    this.#guard(() => this.#listener.onMessage?.(readMessage(data), eventFields))
  }

  /** Runs `read`. An invalid message ends the response, because nothing after it can be trusted. */
  #guard(read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof MessageRefusal)) throw error
      this.#fail(`the server sent a message that is not MCP: ${error.message}`)
    }
  }

  onEnd(): void {
    if (this.#isOver) return
    if (this.#mode === 'message') this.#readWhole()
    if (this.#isOver) return
    this.#isOver = true
    if (this.#refused === undefined) this.#listener.onEnd()
    else {
      const httpResponse = { ...this.#refused, body: Buffer.from(this.#body) }
      this.#listener.onFailure(
        new TargetFailure(`the server responds with ${httpResponse.status}`, { httpResponse }),
      )
    }
  }

  #readWhole(): void {
    this.#guard(() => {
      const found = readMessages(decode(this.#body))
      for (const message of Array.isArray(found) ? found : [found]) {
        this.#listener.onMessage?.(message, undefined)
      }
    })
  }

  onFailure(error: GatewayError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#listener.onFailure(toFailure(error))
  }

  #fail(message: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.call?.close()
    this.#listener.onFailure(new TargetFailure(message))
  }
}

const none = new Uint8Array()
const utf8 = new TextDecoder('utf-8', { fatal: true })

const pairWith = (name: string) => (value: string) => [name, value] as const

/** First byte of a byte order mark in UTF-8, which is not a part of the text. */
const markByte = 0xef

/** Decodes UTF-8. The bytes are a part of the result if they are exactly the text. @throws MessageRefusal */
export function decode(bytes: Uint8Array): { text: string; bytes: Uint8Array | undefined } {
  // Most messages are ASCII, for which this is faster.
  if (Buffer.isBuffer(bytes) && isAscii(bytes)) return { text: bytes.toString('latin1'), bytes }
  try {
    return { text: utf8.decode(bytes), bytes: bytes[0] === markByte ? undefined : bytes }
  } catch {
    throw new MessageRefusal(-32700, 'the text is not UTF-8')
  }
}
