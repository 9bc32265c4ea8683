/** The subscription of a legacy session at a modern server. It changes with the session's resources. */
import { isAcknowledgement } from '../../eras/subscriptions.ts'
import type { McpMessage } from '../../message.ts'
import { LateFlow } from '../target/late-flow.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import { toFailure } from '../target/target-failure.ts'
import type { Flow } from '../target/transport.ts'

export class SessionSubscription extends LateFlow {
  readonly #listener: ResponseListener
  readonly #subscribe: (listener: ResponseListener) => Promise<Flow | undefined>
  /** Each attempt has a number, so that the end of an older stream is ignored. */
  #attempt = 0
  onClose: (() => void) | undefined

  /** `subscribe` opens a stream; it resolves to undefined if there is nothing to subscribe to. */
  constructor(
    listener: ResponseListener,
    subscribe: (listener: ResponseListener) => Promise<Flow | undefined>,
  ) {
    super()
    this.#listener = listener
    this.#subscribe = subscribe
  }

  async open(): Promise<void> {
    const attempt = ++this.#attempt
    const isCurrent = () => attempt === this.#attempt && !this.isOver
    const before = this.flow
    const ended = () => {
      if (isCurrent()) this.#listener.onEnd()
    }
    const flow = await this.#subscribe({
      onMessage: (message: McpMessage) => {
        if (!isCurrent() || message.kind !== 'notification') return
        if (isAcknowledgement(message)) before?.close()
        else this.#listener.onMessage?.(message, undefined)
      },
      onEnd: ended,
      onFailure: ended,
    })
    if (!isCurrent()) flow?.close()
    else if (flow !== undefined) this.attach(flow)
    else this.flow = undefined
    if (flow === undefined) before?.close()
  }

  /** Opens another stream with what the session wants now. */
  reopen(): void {
    this.open().catch((thrown: unknown) => {
      toFailure(thrown)
      if (!this.isOver) this.#listener.onEnd()
    })
  }

  protected override end(): void {
    super.end()
    this.onClose?.()
  }
}
