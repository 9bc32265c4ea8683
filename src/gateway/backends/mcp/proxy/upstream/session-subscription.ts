/** The subscription of a legacy session at a modern server. It changes with the session's resources. */
import type { McpMessage } from '../../message.ts'
import { TargetFailure, toFailure } from '../target/refusals.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import type { Flow } from '../target/transport.ts'

export class SessionSubscription {
  readonly #listener: ResponseListener
  readonly #subscribe: (listener: ResponseListener) => Promise<Flow | undefined>
  #flow: Flow | undefined
  /** Each attempt has a number, so that the end of an older stream is ignored. */
  #attempt = 0
  #isClosed = false

  /** `subscribe` opens a stream; it resolves to undefined if there is nothing to subscribe to. */
  constructor(
    listener: ResponseListener,
    subscribe: (listener: ResponseListener) => Promise<Flow | undefined>,
  ) {
    this.#listener = listener
    this.#subscribe = subscribe
  }

  async open(): Promise<void> {
    const attempt = ++this.#attempt
    const isCurrent = () => attempt === this.#attempt && !this.#isClosed
    const before = this.#flow
    const ended = () => {
      if (isCurrent()) this.#listener.onEnd()
    }
    const flow = await this.#subscribe({
      onMessage: (message: McpMessage) => {
        if (!isCurrent() || message.kind !== 'notification') return
        if (message.method === 'notifications/subscriptions/acknowledged') before?.close()
        else this.#listener.onMessage?.(message, undefined)
      },
      onEnd: ended,
      onFailure: ended,
    })
    if (isCurrent()) this.#flow = flow
    else flow?.close()
    if (flow === undefined) before?.close()
  }

  /** Opens another stream with what the session wants now. */
  reopen(): void {
    this.open().catch((thrown: unknown) => {
      if (!(toFailure(thrown) instanceof TargetFailure) || this.#isClosed) return
      this.#listener.onEnd()
    })
  }

  pause(): void {
    this.#flow?.pause()
  }

  resume(): void {
    this.#flow?.resume()
  }

  close(): void {
    this.#isClosed = true
    this.#flow?.close()
  }
}
