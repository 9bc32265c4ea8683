import type { ClientUser, ExchangeSource } from '../contracts/downstream.ts'

const mostIdle = 1024

/**
 * Exchanges that are over and can serve another request. Making a new one for every request costs
 * about a tenth of a request (docs/engine.md).
 */
export class ExchangePool implements ExchangeSource {
  readonly #idle: ClientUser[] = []
  readonly #make: () => ClientUser

  constructor(make: () => ClientUser) {
    this.#make = make
  }

  take(): ClientUser {
    return this.#idle.pop() ?? this.#make()
  }

  get isFull(): boolean {
    return this.#idle.length >= mostIdle
  }

  keep(exchange: ClientUser): void {
    this.#idle.push(exchange)
  }
}
