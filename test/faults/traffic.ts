/** Requests through every proxy, one after the other, for as long as a run lasts. */
import { setTimeout as after } from 'node:timers/promises'
import { send } from '../support/http-client.ts'
import { hostOf } from './plan.ts'

/** The route that no change touches. */
export const steadyRoute = 'steady'
const everyMs = 20

export class Traffic {
  sent = 0
  readonly failures: string[] = []
  readonly #port: number
  readonly #addresses: ReadonlySet<string>
  readonly #paused = new Set<string>()
  readonly #running: Promise<unknown>
  #isOver = false

  constructor(port: number, addresses: readonly string[]) {
    this.#port = port
    this.#addresses = new Set(addresses)
    this.#running = Promise.all([...this.#addresses].map((address) => this.#send(address)))
  }

  /** Sends nothing to a proxy that is going to be killed; what is on its way is waited for. */
  async pause(address: string): Promise<void> {
    this.#paused.add(address)
    await after(200)
  }

  resume(address: string): void {
    this.#paused.delete(address)
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #send(address: string): Promise<void> {
    const request = { headers: { host: hostOf(steadyRoute) }, address }
    while (!this.#isOver) {
      if (!this.#paused.has(address)) {
        this.sent++
        await send(this.#port, request).then(
          ({ status }) => status === 200 || this.failures.push(`${address}: ${status}`),
          (error) => this.failures.push(`${address}: ${String(error)}`),
        )
      }
      await after(everyMs)
    }
  }
}
