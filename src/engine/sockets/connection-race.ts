/**
 * Connections to several addresses of one name, of which the first that is made is used: Happy
 * Eyeballs, version 2 (RFC 8305 5). The caller has resolved and sorted the addresses.
 *
 *   0 ms      250 ms      500 ms
 *   |-- lead ----------------------------------x  closed when another one has won
 *             |-- second -----> connected: won
 *                                (third never begins)
 *
 * An attempt that fails lets the next one begin at once. The race is decided at TCP's connect: what
 * TLS says of the winner is said of the name.
 */
import { isIPv6, type Socket } from 'node:net'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'
import type { AddressRace, UpstreamAddress } from './upstream-address.ts'

/**
 * The Connection Attempt Delay: milliseconds that an attempt has for itself before the next one
 * begins beside it. RFC 8305 8 recommends this value; it must lie between 100 ms and 2 s.
 */
export const connectionAttemptDelayMs = 250

interface RaceOwner {
  /** Begins to connect; nothing is read from the socket before it is handed over. */
  open(address: UpstreamAddress): Socket
  /** The socket is connected and has no listeners yet. */
  onWon(address: UpstreamAddress, socket: Socket): void
  /** No address could be reached; what the first one said. */
  onLost(error: Error | undefined): void
}

/** What races come to; counted only if a name has several addresses. */
export interface RaceCounters {
  /** Attempts that began beside the first one, or in its place. */
  upstreamRaceAttempts: number
  /** Races by the family of the address that was connected to. */
  readonly upstreamRacesWon: { ipv4: number; ipv6: number }
}

export interface RaceParts {
  readonly timers: TimerWheel
  readonly counters: RaceCounters
}

interface Runner {
  readonly address: UpstreamAddress
  readonly socket: Socket
  isOut: boolean
}

export class ConnectionRace implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #race: AddressRace
  readonly #owner: RaceOwner
  readonly #counters: RaceCounters
  readonly #timer = new Timer(this)
  readonly #addresses: readonly UpstreamAddress[]
  readonly #runners: Runner[] = []
  #firstError: Error | undefined
  #isOver = false

  /** Begins with the lead. */
  constructor(
    { timers, counters }: RaceParts,
    race: AddressRace,
    addresses: readonly UpstreamAddress[],
    owner: RaceOwner,
  ) {
    this.#timers = timers
    this.#counters = counters
    this.#race = race
    this.#addresses = addresses
    this.#owner = owner
    this.#next()
  }

  #next(): void {
    const address = this.#addresses[this.#runners.length]
    if (address === undefined) return
    if (this.#runners.length > 0) this.#counters.upstreamRaceAttempts++
    const socket = this.#owner.open(address)
    const runner: Runner = { address, socket, isOut: false }
    this.#runners.push(runner)
    // Listens to its end: an error of a socket without listeners would end the process.
    socket.on('error', (error) => {
      this.#firstError ??= error
    })
    socket.once('connect', () => this.#connected(runner))
    socket.once('close', () => this.#failed(runner))
    const isLast = this.#runners.length === this.#addresses.length
    if (isLast || this.#race.isPatient) this.#timers.disarm(this.#timer)
    else this.#timers.arm(this.#timer, connectionAttemptDelayMs)
  }

  /** The attempt that began last takes its time. */
  onTimer(): void {
    if (!this.#isOver) this.#next()
  }

  #connected(winner: Runner): void {
    if (this.#isOver) return
    this.#end()
    this.#counters.upstreamRacesWon[isIPv6(winner.address.host) ? 'ipv6' : 'ipv4']++
    const before = this.#runners.slice(0, this.#runners.indexOf(winner))
    for (const runner of this.#runners) if (runner !== winner) runner.socket.destroy()
    if (before.length > 0) {
      const those = (isOut: boolean) =>
        before.filter((one) => one.isOut === isOut).map(({ address }) => address)
      this.#race.won(winner.address, { failed: those(true), slow: those(false) })
    }
    this.#owner.onWon(winner.address, winner.socket)
  }

  #failed(runner: Runner): void {
    if (this.#isOver) return
    runner.isOut = true
    if (this.#runners.length < this.#addresses.length) {
      this.#next()
      return
    }
    if (!this.#runners.every(({ isOut }) => isOut)) return
    this.#end()
    this.#owner.onLost(this.#firstError)
  }

  /** Gives it up; the owner is not called again. */
  cancel(): void {
    if (this.#isOver) return
    this.#end()
    for (const { socket } of this.#runners) socket.destroy()
  }

  #end(): void {
    this.#isOver = true
    this.#timers.disarm(this.#timer)
  }
}
