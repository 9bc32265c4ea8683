import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * How often a quiet stream sends an empty line, so that both sides notice if the other one is gone. The page
 * waits twice as long.
 */
const quietMs = 5_000

/** A response of JSON lines that is written only as fast as the client reads it. */
export class LineStream {
  /** Aborted when the client is gone or the console stops. */
  readonly signal: AbortSignal
  readonly #response: ServerResponse
  readonly #gone = new AbortController()
  #timer: NodeJS.Timeout | undefined

  constructor(request: IncomingMessage, response: ServerResponse, ending: AbortSignal) {
    request.resume()
    this.#response = response
    this.signal = AbortSignal.any([ending, this.#gone.signal])
    response.on('close', () => {
      clearInterval(this.#timer)
      this.#gone.abort()
    })
  }

  /** Sends the head, and an empty line from time to time. */
  keepAlive(): void {
    this.#begin()
    this.#response.flushHeaders()
    this.#timer = setInterval(() => this.#response.write('\n'), quietMs).unref()
  }

  /** Resolves to false if the client is gone. */
  async write(line: string): Promise<boolean> {
    if (this.signal.aborted) return false
    this.#begin()
    if (this.#response.write(line)) return true
    return once(this.#response, 'drain', { signal: this.signal }).then(
      () => true,
      () => false,
    )
  }

  async end(): Promise<void> {
    this.#begin()
    this.#response.end()
  }

  #begin(): void {
    if (this.#response.headersSent) return
    this.#response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
  }
}
