import { GatewayError } from '../../../ground/errors/index.ts'
import type { ForwardOptions, TunnelOptions } from '../contracts/requests.ts'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'

/** The state of a tunnel on which its deadlines depend. */
interface TunnelProgress {
  /** Bytes that the tunnel has carried. */
  readonly movedBytes: number
  /** Whether the client must still send its ClientHello. */
  readonly awaitsHello: boolean
}

const lateHello = 'the client has not sent its ClientHello in time'

/**
 * The deadlines of an exchange: of all attempts together, of the current attempt, and of the time until the
 * response of the current attempt is relayed. Those of a tunnel replace them once it is open.
 */
export class Deadlines implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #onPassed: (error: GatewayError) => void
  readonly #request = new Timer(this)
  readonly #attempt = new Timer(this)
  readonly #response = new Timer(this)
  readonly #idle = new Timer(this)
  #idleMs = 0
  #hasBegun = false
  /** Set while the tunnel of a CONNECT is open. */
  #tunnel: TunnelOptions | undefined
  #progress: TunnelProgress | undefined
  #tunnelBytes = 0

  constructor(timers: TimerWheel, onPassed: (error: GatewayError) => void) {
    this.#timers = timers
    this.#onPassed = onPassed
  }

  /** Begins an attempt. The first one also starts the deadline of the whole exchange. */
  begin(options: ForwardOptions): void {
    if (options.requestTimeoutMs > 0 && !this.#hasBegun) {
      this.#hasBegun = true
      this.#timers.arm(this.#request, options.requestTimeoutMs)
    }
    this.#timers.disarm(this.#attempt)
    if (options.attemptTimeoutMs > 0) this.#timers.arm(this.#attempt, options.attemptTimeoutMs)
    this.endWait()
    const { responseTimeoutMs = 0, idleTimeoutMs = 0 } = options
    if (responseTimeoutMs > 0) this.#timers.arm(this.#response, responseTimeoutMs)
    this.#idleMs = idleTimeoutMs
  }

  /** Called when bytes of a response have arrived that is not relayed yet. */
  noteRead(): void {
    if (this.#idleMs > 0) this.#timers.arm(this.#idle, this.#idleMs)
  }

  /** Called when the response is relayed, or replaced. */
  endWait(): void {
    this.#timers.disarm(this.#response)
    this.#timers.disarm(this.#idle)
    this.#idleMs = 0
  }

  /**
   * Returns the error of a deadline that has passed although its timer was not called yet, and disarms the
   * timer. A busy process reads what has arrived before it calls timers.
   */
  takePassed(): GatewayError | undefined {
    const timers = this.#timers
    const timer = timers.isDue(this.#request) ? this.#request : this.#attempt
    if (!timers.isDue(timer)) return undefined
    timers.disarm(timer)
    return this.#errorOf(timer)
  }

  /** Ends all deadlines, and begins those of a tunnel. */
  beginTunnel(tunnel: TunnelOptions | undefined, progress: TunnelProgress): void {
    this.end()
    if (tunnel === undefined) return
    this.#tunnel = tunnel
    this.#progress = progress
    this.#tunnelBytes = progress.movedBytes
    if (tunnel.idleTimeoutMs > 0) this.#timers.arm(this.#idle, tunnel.idleTimeoutMs)
    if (tunnel.maxDurationMs > 0) this.#timers.arm(this.#request, tunnel.maxDurationMs)
    const { helloTimeoutMs = 0 } = tunnel
    if (helloTimeoutMs > 0) this.#timers.arm(this.#response, helloTimeoutMs)
  }

  end(): void {
    this.#tunnel = undefined
    this.#progress = undefined
    this.#hasBegun = false
    this.#timers.disarm(this.#request)
    this.#timers.disarm(this.#attempt)
    this.endWait()
  }

  onTimer(timer: Timer): void {
    if (timer === this.#response && this.#progress?.awaitsHello === false) return
    const bytes = timer === this.#idle ? this.#progress?.movedBytes : undefined
    if (this.#tunnel !== undefined && bytes !== undefined && bytes !== this.#tunnelBytes) {
      this.#tunnelBytes = bytes
      this.#timers.arm(this.#idle, this.#tunnel.idleTimeoutMs)
    } else this.#onPassed(this.#errorOf(timer))
  }

  #errorOf(timer: Timer): GatewayError {
    if (this.#tunnel !== undefined) {
      if (timer === this.#response) return new GatewayError('server_name_refused', lateHello)
      return new GatewayError(timer === this.#idle ? 'stream_idle' : 'tunnel_expired')
    }
    return new GatewayError(timer === this.#request ? 'route_timeout' : 'upstream_timeout')
  }
}
