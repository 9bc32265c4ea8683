/**
 * A race of connections to several addresses of one name, of which the first to connect is used:
 * Happy Eyeballs, version 2 (RFC 8305 5). The caller has resolved and sorted the addresses.
 *
 *   0 ms      250 ms      500 ms
 *   |-- first ---------------------------------x  closed when another one has won
 *             |-- second -----> connected: won
 *                                (third never begins)
 *
 * If an attempt fails, the next one begins at once. The race is decided when TCP is connected; if the
 * TLS handshake of the winner fails, no other address is tried.
 */
import { isIPv6, type Socket } from 'node:net'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'
import type { AddressRace, UpstreamAddress } from './upstream-address.ts'

/**
 * The Connection Attempt Delay: milliseconds after which the next attempt begins while the previous
 * one is still connecting. RFC 8305 8 recommends this value; it must lie between 100 ms and 2 s.
 */
export const connectionAttemptDelayMs = 250

interface RaceOwner {
  /** Begins to connect. Nothing is read from the socket before `onWon`. */
  open(address: UpstreamAddress): Socket
  /** Called when the socket is connected; it has no listeners yet. */
  onWon(address: UpstreamAddress, socket: Socket): void
  /** Called if no address could be reached. `error` is that of the first attempt that failed. */
  onLost(error: Error | undefined): void
}

/** Counters of races. Connections to a name with one address have no race. */
export interface RaceCounters {
  /** Number of attempts after the first one of their race. */
  upstreamRaceAttempts: number
  /** Number of races by the address family that was connected to. */
  readonly upstreamRacesWon: { ipv4: number; ipv6: number }
}

export interface RaceParts {
  readonly timers: TimerWheel
  readonly counters: RaceCounters
}

interface Runner {
  readonly address: UpstreamAddress
  readonly socket: Socket
  hasFailed: boolean
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

  /** Begins with the first address. */
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
    const runner: Runner = { address, socket, hasFailed: false }
    this.#runners.push(runner)
    // The listener stays, because an error of a socket without listeners would end the process.
    socket.on('error', (error) => {
      this.#firstError ??= error
    })
    socket.once('connect', () => this.#connected(runner))
    socket.once('close', () => this.#failed(runner))
    const isLast = this.#runners.length === this.#addresses.length
    if (isLast || this.#race.isPatient) this.#timers.disarm(this.#timer)
    else this.#timers.arm(this.#timer, connectionAttemptDelayMs)
  }

  /** Called when the latest attempt is slow. */
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
      const those = (hasFailed: boolean) =>
        before.filter((one) => one.hasFailed === hasFailed).map(({ address }) => address)
      this.#race.won(winner.address, { failed: those(true), slow: those(false) })
    }
    this.#owner.onWon(winner.address, winner.socket)
  }

  #failed(runner: Runner): void {
    if (this.#isOver) return
    runner.hasFailed = true
    if (this.#runners.length < this.#addresses.length) {
      this.#next()
      return
    }
    if (!this.#runners.every(({ hasFailed }) => hasFailed)) return
    this.#end()
    this.#owner.onLost(this.#firstError)
  }

  /** Cancels the race. The owner is not called again. */
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
