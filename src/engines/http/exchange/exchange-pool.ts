import type { DownstreamHandler } from '../contracts/downstream.ts'

const mostIdle = 1024

/**
 * Exchanges that have ended and can serve another request. Creating one for every request takes about
 * a tenth of a request's time (docs/engine.md).
 */
export class ExchangePool {
  readonly #idle: DownstreamHandler[] = []
  readonly #make: () => DownstreamHandler

  constructor(make: () => DownstreamHandler) {
    this.#make = make
  }

  take(): DownstreamHandler {
    return this.#idle.pop() ?? this.#make()
  }

  keep(exchange: DownstreamHandler): void {
    if (this.#idle.length < mostIdle) this.#idle.push(exchange)
  }
}
