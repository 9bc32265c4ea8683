/** Where messages of a server go: responses of the HTTP server, as JSON or as a stream. */
import type { ServerResponse } from 'node:http'
import type { Sink } from './channel.ts'

/** A client that reads so slowly loses notifications. Responses are kept. */
const maxUnreadBytes = 1_048_576

type Headers = Readonly<Record<string, string>>

/** JSON may have line breaks as white space, but an event is one line. */
const eventOf = (text: string): string =>
  `event: message\ndata: ${/[\r\n]/.test(text) ? text.replaceAll(/[\r\n]+/g, ' ') : text}\n\n`

/** The response to a POST: JSON, unless something precedes the response of the server. */
export class ResponseSink implements Sink {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  message(text: string): void {
    const response = this.#response
    if (response.writableEnded || response.destroyed) return
    if (!response.headersSent) beginStream(response)
    if (response.writableLength < maxUnreadBytes) response.write(eventOf(text))
  }

  end(text: string): void {
    const response = this.#response
    if (response.writableEnded || response.destroyed) return
    if (response.headersSent) response.end(eventOf(text))
    else sendJson(response, text)
  }
}

/** The response to a GET: a stream without an end. */
export class StreamSink extends ResponseSink {
  readonly #stream: ServerResponse

  constructor(response: ServerResponse) {
    super(response)
    this.#stream = response
    beginStream(response)
  }

  override end(): void {
    this.#stream.end()
  }
}

function beginStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.flushHeaders()
}

export function sendJson(
  response: ServerResponse,
  text: string,
  status = 200,
  headers: Headers = {},
): void {
  const type = 'application/json'
  const length = Buffer.byteLength(text)
  response.writeHead(status, { 'content-type': type, 'content-length': length, ...headers })
  response.end(text)
}
