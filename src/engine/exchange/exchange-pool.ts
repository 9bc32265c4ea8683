import type { DownstreamHandler, ExchangeSource } from '../contracts/downstream.ts'

const mostIdle = 1024

/**
 * Exchanges that are over and can serve another request. Making a new one for every request costs
 * about a tenth of a request (docs/engine.md).
 */
export class ExchangePool implements ExchangeSource {
  readonly #idle: DownstreamHandler[] = []
  readonly #make: () => DownstreamHandler

  constructor(make: () => DownstreamHandler) {
    this.#make = make
  }

  take(): DownstreamHandler {
    return this.#idle.pop() ?? this.#make()
  }

  get isFull(): boolean {
    return this.#idle.length >= mostIdle
  }

  keep(exchange: DownstreamHandler): void {
    this.#idle.push(exchange)
  }
}
