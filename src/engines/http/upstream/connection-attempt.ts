/** A connection that is closed as soon as it is made, to find out whether it can be made. */
import { GatewayError } from '../../../ground/errors/index.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import { dialError } from '../sockets/dial.ts'
import { type OpeningOwner, openTransport } from '../sockets/open-transport.ts'
import type { Transport } from '../sockets/transport.ts'
import type { UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'

/** Called once, with the reason if no connection was made. */
type AttemptListener = (error: GatewayError | undefined) => void

/** Connects within a time, with TLS and through the proxy of the address. The result cancels it. */
export type ConnectOnce = (
  address: UpstreamAddress,
  timeoutMs: number,
  onResult: AttemptListener,
) => () => void

export function connectOnce(parts: EngineParts, ...attempt: Parameters<ConnectOnce>): () => void {
  const begun = new ConnectionAttempt(parts, ...attempt)
  return () => begun.close()
}

class ConnectionAttempt implements OpeningOwner, TimerOwner {
  readonly #parts: EngineParts
  readonly #address: UpstreamAddress
  readonly #onResult: AttemptListener
  readonly #timer = new Timer(this)
  readonly #transport: Transport
  #isOver = false

  constructor(
    parts: EngineParts,
    address: UpstreamAddress,
    timeoutMs: number,
    onResult: AttemptListener,
  ) {
    this.#parts = parts
    this.#address = address
    this.#onResult = onResult
    parts.timers.arm(this.#timer, timeoutMs)
    const opening = { address, race: undefined, reads: 'events', owner: this } as const
    this.#transport = openTransport(parts, opening)
  }

  /** Closes the connection. The listener is not called again. */
  close(): void {
    this.#end()
    if (!this.#transport.closed) this.#transport.destroy()
  }

  onReady(): void {
    this.#report(undefined)
  }

  onTimer(): void {
    this.#report(new GatewayError('connect_timeout'))
  }

  onClose(error: Error | undefined): void {
    this.#report(dialError(this.#address, error))
  }

  onEnd(): void {
    // Reported by `onClose`, unless the connection was ready.
  }

  onBytes(): void {
    // What the server sends first is ignored.
  }

  onDrain(): void {
    // Nothing is written.
  }

  onAlternateAddress(): void {
    // There is only one address.
  }

  #report(error: GatewayError | undefined): void {
    if (this.#isOver) return
    this.close()
    this.#onResult(error)
  }

  #end(): void {
    this.#isOver = true
    this.#parts.timers.disarm(this.#timer)
  }
}
