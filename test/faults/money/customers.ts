/** Teams that send requests through all proxies, many at a time, for as long as a run lasts. */
import { setTimeout as after } from 'node:timers/promises'
import { waitFor } from '../../support/wait-for.ts'
import { type Answer, ask } from './clients.ts'
import { proxyNameOf } from './scene.ts'

/** Requests under way through each proxy. */
const parallel = 12
const pauseMs = 50
/** A team that was refused for good sends one of so many of its requests. */
const rareEvery = 50
/** Final refusals in a row, through one proxy, after which a team has spent everything. */
const lastRefusals = 3

interface CustomerOptions {
  readonly teams: readonly string[]
  readonly port: number
  readonly random: () => number
}

export class Customers {
  refused = 0
  failed = 0
  readonly #options: CustomerOptions
  readonly #refusedTeams = new Set<string>()
  /** Proxies that are being killed: requests under way go on, and no further ones are sent. */
  readonly #left = new Set<string>()
  /** How many times each proxy was killed. */
  readonly #runs = new Map<string, number>()
  #turn = 0
  #running: Promise<unknown> = Promise.resolve()

  constructor(options: CustomerOptions) {
    this.#options = options
  }

  async #ask(team: string, address: string): Promise<Answer> {
    const { port, random } = this.#options
    const isStreamed = random() < 0.3
    const target = {
      team,
      address,
      port,
      proxy: proxyNameOf(address),
      run: this.#runs.get(address) ?? 0,
      isStreamed,
    }
    const answer = await ask(target, this.#turn++)
    if (answer === 'refused') {
      this.refused++
      this.#refusedTeams.add(team)
    } else if (answer === 'failed') {
      this.failed++
      await after(pauseMs)
    }
    return answer
  }

  /** Waits until every proxy serves a paid request. */
  async warmUp(addresses: readonly string[]): Promise<void> {
    const [team = ''] = this.#options.teams
    for (const address of addresses) {
      await waitFor(
        `a paid request through ${address}`,
        async () => (await this.#ask(team, address)) === 'paid',
      )
    }
    this.failed = 0
  }

  start(addresses: readonly string[], isEnough: () => boolean): void {
    const { teams, random } = this.#options
    const send = async (address: string) => {
      while (!isEnough()) {
        if (this.#left.has(address)) {
          await after(pauseMs)
          continue
        }
        const team = teams[Math.floor(random() * teams.length)] ?? ''
        if (this.#refusedTeams.has(team) && random() > 1 / rareEvery) continue
        await this.#ask(team, address)
      }
    }
    const clients = addresses.flatMap((address) => Array.from({ length: parallel }, () => address))
    this.#running = Promise.all(clients.map(send))
  }

  /** Sends nothing more to a proxy that is going to be killed. */
  leave(address: string): void {
    this.#left.add(address)
  }

  /** Sends to a proxy again. */
  comeBack(address: string): void {
    this.#runs.set(address, (this.#runs.get(address) ?? 0) + 1)
    this.#left.delete(address)
  }

  end(): Promise<unknown> {
    return this.#running
  }

  /** Sends requests of teams until each proxy refuses them for good. */
  async exhaust(teams: readonly string[], addresses: readonly string[]): Promise<void> {
    for (const team of teams) {
      for (const address of addresses) {
        let refusals = 0
        await waitFor(
          `the last refusal of ${team} through ${address}`,
          async () => {
            const answer = await this.#ask(team, address)
            refusals = answer === 'refused' ? refusals + 1 : answer === 'paid' ? 0 : refusals
            return refusals >= lastRefusals
          },
          120_000,
        )
      }
    }
  }
}
