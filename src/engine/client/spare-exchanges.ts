import type { ClientUser } from './client-side.ts'

const mostSpare = 1024

/** Exchanges that are over and may serve again: to make one costs more than a request. */
export class SpareExchanges {
  readonly #spare: ClientUser[] = []
  readonly #make: () => ClientUser

  constructor(make: () => ClientUser) {
    this.#make = make
  }

  /** One that nobody uses. */
  take(): ClientUser {
    return this.#spare.pop() ?? this.#make()
  }

  get isFull(): boolean {
    return this.#spare.length >= mostSpare
  }

  keep(exchange: ClientUser): void {
    this.#spare.push(exchange)
  }
}
