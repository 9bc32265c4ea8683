/** Requests without pause, while something else happens. */
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { waitFor } from './wait-for.ts'

/** Leaves most of the machine to the tested process. */
const pauseMs = 3

/** Sends requests without pause on reused connections until stopped; returns statuses and errors. */
export class SteadyLoad {
  readonly statuses = new Map<number, number>()
  readonly failures: string[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 })
  readonly #port: number
  readonly #running: Promise<unknown>
  #isStopped = false

  constructor(port: number) {
    this.#port = port
    this.#running = Promise.all(Array.from({ length: 8 }, () => this.#ask()))
  }

  get count(): number {
    return [...this.statuses.values()].reduce((sum, one) => sum + one, 0)
  }

  /** Waits until so many more were answered. */
  async more(count: number): Promise<void> {
    const before = this.count
    await waitFor(`${count} more answers`, () => this.count >= before + count)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
    this.#agent.destroy()
  }

  async #ask(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const status = await this.#once()
        this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
        await pause(pauseMs)
      } catch (error) {
        this.failures.push(String(error))
      }
    }
  }

  #once(): Promise<number> {
    return new Promise((resolve, reject) => {
      const options = { agent: this.#agent, port: this.#port, host: '127.0.0.1', path: '/' }
      const sent = request(options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0))
        response.once('error', reject)
      })
      sent.once('error', reject)
      sent.end()
    })
  }
}
