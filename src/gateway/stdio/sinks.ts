/** Where messages of a server go: responses to the proxy, as JSON or as a stream. */
import type { Sink } from './channel.ts'
import type { Reply } from './reply.ts'

/** A client that reads so slowly loses notifications. Responses are kept. */
const maxUnreadBytes = 1_048_576

/** The response to a POST: JSON, unless something precedes the response of the server. */
export class ResponseSink implements Sink {
  readonly #reply: Reply

  constructor(reply: Reply) {
    this.#reply = reply
  }

  message(text: string): void {
    const reply = this.#reply
    if (reply.isOver) return
    reply.beginStream()
    if (reply.unreadBytes < maxUnreadBytes) reply.event(text)
  }

  end(text: string): void {
    const reply = this.#reply
    if (reply.isStream) reply.endStream(text)
    else reply.json(text)
  }
}

/** The response to a GET: a stream without an end. */
export class StreamSink extends ResponseSink {
  readonly #stream: Reply

  constructor(reply: Reply) {
    super(reply)
    this.#stream = reply
    reply.beginStream()
  }

  override end(): void {
    this.#stream.endStream()
  }
}
