/**
 * Equal requests that are under way at the same time, in one thread (request collapsing). The first one leads: it asks the
 * provider, and the others wait for its answer. If it fails, or its client leaves, the next one leads. If that one
 * fails too, all others ask the provider themselves, so that failures do not add up.
 */
import type { StoredAnswer } from './answer-memory.ts'

/** Maximum number of requests that wait for one answer, and for all answers of a thread. */
const maxWaiters = 256
const maxWaiting = 4_096
/** Number of leaders that may fail before all requests ask the provider. */
const maxFailures = 2

interface Flight {
  readonly key: string
  /** Undefined once the flight is over. */
  leader: Seat | undefined
  /** In the order of arrival. */
  readonly waiting: Set<WaitingSeat>
  failures: number
}

/** The part of one request in a flight. */
export interface Seat {
  readonly key: string
  /** The answer of the leader; undefined if the request has to ask the provider. Not set for the first leader. */
  readonly answer: Promise<StoredAnswer | undefined> | undefined
  /** Ends the flight with an answer, or without one that others can use. Has an effect only for the leader. */
  land(answer: StoredAnswer | undefined): void
  /** Called if the request fails, or is over. Idempotent. */
  leave(): void
}

export class Flights {
  readonly #flights = new Map<string, Flight>()
  #waiting = 0

  /** Returns the seat of a request, which waits at most `waitMs`; undefined if too many requests wait. */
  join(key: string, waitMs: number): Seat | undefined {
    const flight = this.#flights.get(key)
    if (flight === undefined) return this.#lead(key)
    if (flight.waiting.size >= maxWaiters || this.#waiting >= maxWaiting) return undefined
    return this.#wait(flight, waitMs)
  }

  #lead(key: string): Seat {
    const flight: Flight = { key, leader: undefined, waiting: new Set(), failures: 0 }
    const seat: Seat = {
      key,
      answer: undefined,
      land: (answer) => this.#land(flight, seat, answer),
      leave: () => this.#fail(flight, seat),
    }
    flight.leader = seat
    this.#flights.set(key, flight)
    return seat
  }

  #wait(flight: Flight, waitMs: number): Seat {
    const { promise, resolve } = Promise.withResolvers<StoredAnswer | undefined>()
    const end = (answer: StoredAnswer | undefined) => {
      if (!flight.waiting.delete(seat)) return
      this.#waiting--
      clearTimeout(timer)
      resolve(answer)
    }
    const seat: WaitingSeat = {
      key: flight.key,
      answer: promise,
      end,
      land: (answer) => this.#land(flight, seat, answer),
      leave: () => {
        end(undefined)
        this.#fail(flight, seat)
      },
    }
    const timer = setTimeout(end, waitMs, undefined).unref()
    flight.waiting.add(seat)
    this.#waiting++
    return seat
  }

  #land(flight: Flight, seat: Seat, answer: StoredAnswer | undefined): void {
    if (flight.leader !== seat) return
    flight.leader = undefined
    this.#flights.delete(flight.key)
    for (const one of flight.waiting) one.end(answer)
  }

  #fail(flight: Flight, seat: Seat): void {
    if (flight.leader !== seat) return
    flight.failures++
    const [next] = flight.waiting
    if (next === undefined || flight.failures >= maxFailures) {
      this.#land(flight, seat, undefined)
      return
    }
    flight.leader = next
    next.end(undefined)
  }
}

interface WaitingSeat extends Seat {
  /** Ends the wait. Idempotent. */
  end(answer: StoredAnswer | undefined): void
}
