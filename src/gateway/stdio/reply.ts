/** The response to a request of the proxy: JSON, or a stream of events. Each part is one write. */
import type { Socket } from 'node:net'

const reasons: Readonly<Record<number, string>> = {
  200: 'OK',
  202: 'Accepted',
  204: 'No Content',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  421: 'Misdirected Request',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n'
const lastChunk = '0\r\n\r\n'

/** JSON may have line breaks as white space, but an event is one line. */
const eventOf = (text: string): string =>
  `event: message\ndata: ${/[\r\n]/.test(text) ? text.replaceAll(/[\r\n]+/g, ' ') : text}\n\n`

const chunkOf = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

export class Reply {
  readonly #socket: Socket
  readonly #onEnd: () => void
  /** Called if the client disconnects before the end of the response. */
  onDisconnect: (() => void) | undefined
  #isStream = false
  #isOver = false

  /** `onEnd` is called when the whole response was written. */
  constructor(socket: Socket, onEnd: () => void) {
    this.#socket = socket
    this.#onEnd = onEnd
  }

  /** Whether nothing more can be written. */
  get isOver(): boolean {
    return this.#isOver
  }

  get isStream(): boolean {
    return this.#isStream
  }

  /** Bytes that the client has not read yet. */
  get unreadBytes(): number {
    return this.#socket.writableLength
  }

  /** Sends a whole response with JSON. `fields` are further header lines, each with its line break. */
  json(text: string, status = 200, fields = ''): void {
    const length = Buffer.byteLength(text)
    const head = `HTTP/1.1 ${status} ${reasons[status] ?? ''}\r\ncontent-type: application/json\r\n`
    const whole = `${head}${fields}content-length: ${length}\r\n\r\n${text}`
    // ASCII, which most messages are, is encoded faster in this way.
    this.#finish(whole, length === text.length ? 'latin1' : 'utf8')
  }

  /** Sends a response without content. */
  empty(status: 200 | 202 | 204): void {
    const length = status === 204 ? '' : 'content-length: 0\r\n'
    this.#finish(`HTTP/1.1 ${status} ${reasons[status]}\r\n${length}\r\n`, 'latin1')
  }

  /** Refuses a request. */
  refuse(status: number, why: string): void {
    this.json(JSON.stringify({ error: why }), status)
  }

  beginStream(): void {
    if (this.#isOver || this.#isStream) return
    this.#isStream = true
    this.#socket.write(streamHead)
  }

  /** Sends a message as an event of the stream. */
  event(text: string): void {
    if (!this.#isOver) this.#socket.write(chunkOf(eventOf(text)))
  }

  /** Ends the stream, with a last message if there is one. */
  endStream(text?: string): void {
    this.#finish(text === undefined ? lastChunk : chunkOf(eventOf(text)) + lastChunk, 'utf8')
  }

  #finish(text: string, encoding: 'latin1' | 'utf8'): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#socket.write(text, encoding)
    this.#onEnd()
  }

  /** The client has closed the connection. */
  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.onDisconnect?.()
  }
}
