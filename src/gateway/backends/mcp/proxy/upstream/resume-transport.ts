/** Takes a request to the call of a legacy server that waits for its input. */

import type { Bridge, HeldInput } from '../session/cross-thread-calls.ts'
import { TargetFailure } from '../target/refusals.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import type { Flow, OutgoingMessage, Transport } from '../target/transport.ts'

interface Resumed extends Pick<HeldInput, 'responses'> {
  /** Id of the held call. */
  readonly held: string
  readonly owner: string
}

export class ResumeTransport implements Transport {
  readonly era = 'modern'
  readonly endpoint = undefined
  readonly #bridge: Bridge
  readonly #resumed: Resumed

  constructor(bridge: Bridge, resumed: Resumed) {
    this.#bridge = bridge
    this.#resumed = resumed
  }

  post({ text }: OutgoingMessage, listener: ResponseListener): Promise<Flow> {
    const { held, owner, responses } = this.#resumed
    return Promise.resolve(this.#bridge.resume(held, owner, { text, responses }, listener))
  }

  listen(): Promise<Flow> {
    return Promise.reject(new TargetFailure('the modern era has no such stream'))
  }

  end(): Promise<void> {
    return Promise.resolve()
  }
}
