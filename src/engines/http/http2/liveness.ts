import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'
import { pingFrame } from './frames.ts'

/** How long an upstream may take to send its SETTINGS (RFC 9113 6.5.3), and to respond to a PING. */
const settingsTimeoutMs = 10_000
const pingTimeoutMs = 5_000
/** How long an upstream must be silent before a new request, or an abandoned one, causes a PING. */
const silentBeforeRequestMs = 5_000
const silentBeforeAbandonedMs = 100
/** How long new requests are sent to a connection that has not responded yet. */
const patienceMs = 1_000
/**
 * Maximum number of PINGs between frames of responses. Servers of gRPC close a connection with
 * ENHANCE_YOUR_CALM after more.
 */
const maxPings = 2
const payload = 'areuwell'

/** The upstream connection that is checked. */
interface CheckedSession {
  readonly output: { write(frames: string): void }
  /** Called when the upstream has not responded in time. */
  onUnanswered(): void
  /** Called when the connection must take no more requests. */
  retire(): void
}

/**
 * Finds upstream connections that are open but dead: a stuck process, a lost entry of a NAT, a node
 * that is gone. A PING is sent if a request is abandoned while the upstream is silent, and with the
 * first request after a silence. Any bytes count as the response.
 */
export class Liveness implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #now: () => number
  readonly #session: CheckedSession
  readonly #timer = new Timer(this)
  #lastReceivedAt = 0
  /** When the unanswered PING or preface was sent; negative if there is none. */
  #askedAt = -1
  /** Whether a request was abandoned since then. */
  #isSuspect = false
  #pings = 0

  /** `now` returns monotonic milliseconds. */
  constructor(timers: TimerWheel, now: () => number, session: CheckedSession) {
    this.#timers = timers
    this.#now = now
    this.#session = session
  }

  /** Called when the preface has been sent, to which the upstream responds with SETTINGS. */
  start(): void {
    this.#ask(this.#now(), settingsTimeoutMs)
  }

  #ask(now: number, timeoutMs: number): void {
    this.#askedAt = now
    this.#timers.arm(this.#timer, timeoutMs, now)
  }

  /** Called when bytes have arrived. */
  onActivity(): void {
    this.#lastReceivedAt = this.#now()
    if (this.#askedAt < 0) return
    this.#askedAt = -1
    this.#isSuspect = false
    this.#timers.disarm(this.#timer)
  }

  /** Called when a frame of a response has arrived. */
  onResponseFrame(): void {
    this.#pings = 0
  }

  /** Whether new requests may be sent on the connection. */
  get takesRequests(): boolean {
    if (this.#askedAt < 0) return true
    return !this.#isSuspect && this.#now() - this.#askedAt < patienceMs
  }

  /** Called when a request begins. */
  onRequest(): void {
    const now = this.#now()
    if (this.#askedAt < 0 && now - this.#lastReceivedAt >= silentBeforeRequestMs) this.#ping(now)
  }

  /** Called when a request was abandoned before its response was complete. */
  onAbandoned(): void {
    const now = this.#now()
    if (this.#askedAt < 0) {
      if (now - this.#lastReceivedAt < silentBeforeAbandonedMs) return
      this.#ping(now)
    }
    this.#isSuspect = true
  }

  #ping(now: number): void {
    if (this.#pings >= maxPings) {
      this.#session.retire()
      return
    }
    this.#pings++
    this.#session.output.write(pingFrame(payload, false))
    this.#ask(now, pingTimeoutMs)
  }

  stop(): void {
    this.#timers.disarm(this.#timer)
  }

  onTimer(): void {
    this.#session.onUnanswered()
  }
}
