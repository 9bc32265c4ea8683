/**
 * Equal requests that are under way at the same time, in one thread (request collapsing). The first one is the leader: it
 * asks the provider, and the others wait for its answer. If it fails, or its client disconnects, the next one becomes the
 * leader. If that one fails too, all others ask the provider themselves, so that failures do not add up.
 */
import { timerDelay } from '../../../../ground/base/timer-delay.ts'
import type { StoredAnswer } from './answer-memory.ts'

/** Maximum number of requests that wait for one answer, and that wait in a thread. */
const maxWaiters = 256
const maxWaiting = 4_096
/** Number of leaders that may fail before all requests ask the provider. */
const maxFailures = 2

/** One request to the provider, and the equal requests that wait for it. */
interface Flight {
  readonly key: string
  /** Undefined once the flight is over. */
  leader: FlightMember | undefined
  /** In the order of arrival. */
  readonly waiting: Set<WaitingMember>
  failures: number
}

/** A request that leads a flight or waits for its answer. */
export interface FlightMember {
  readonly key: string
  /** The answer of the leader; undefined if the request has to ask the provider. Not set for the first leader. */
  readonly answer: Promise<StoredAnswer | undefined> | undefined
  /** Ends the flight with an answer, or without one that others can use. Has an effect only for the leader. */
  complete(answer: StoredAnswer | undefined): void
  /** Called if the request fails, or is over. Idempotent. */
  leave(): void
}

export class Flights {
  readonly #flights = new Map<string, Flight>()
  #waiting = 0

  /** Returns the member for a request, which waits at most `waitMs`; undefined if too many requests wait. */
  join(key: string, waitMs: number): FlightMember | undefined {
    const flight = this.#flights.get(key)
    if (flight === undefined) return this.#lead(key)
    if (flight.waiting.size >= maxWaiters || this.#waiting >= maxWaiting) return undefined
    return this.#wait(flight, waitMs)
  }

  #lead(key: string): FlightMember {
    const flight: Flight = { key, leader: undefined, waiting: new Set(), failures: 0 }
    const member: FlightMember = {
      key,
      answer: undefined,
      complete: (answer) => this.#complete(flight, member, answer),
      leave: () => this.#fail(flight, member),
    }
    flight.leader = member
    this.#flights.set(key, flight)
    return member
  }

  #wait(flight: Flight, waitMs: number): FlightMember {
    const { promise, resolve } = Promise.withResolvers<StoredAnswer | undefined>()
    const end = (answer: StoredAnswer | undefined) => {
      if (!flight.waiting.delete(member)) return
      this.#waiting--
      clearTimeout(timer)
      resolve(answer)
    }
    const member: WaitingMember = {
      key: flight.key,
      answer: promise,
      end,
      complete: (answer) => this.#complete(flight, member, answer),
      leave: () => {
        end(undefined)
        this.#fail(flight, member)
      },
    }
    const timer = setTimeout(end, timerDelay(waitMs), undefined).unref()
    flight.waiting.add(member)
    this.#waiting++
    return member
  }

  #complete(flight: Flight, member: FlightMember, answer: StoredAnswer | undefined): void {
    if (flight.leader !== member) return
    flight.leader = undefined
    this.#flights.delete(flight.key)
    for (const one of flight.waiting) one.end(answer)
  }

  #fail(flight: Flight, member: FlightMember): void {
    if (flight.leader !== member) return
    flight.failures++
    const [next] = flight.waiting
    if (next === undefined || flight.failures >= maxFailures) {
      this.#complete(flight, member, undefined)
      return
    }
    flight.leader = next
    next.end(undefined)
  }
}

interface WaitingMember extends FlightMember {
  /** Ends the wait. Idempotent. */
  end(answer: StoredAnswer | undefined): void
}
