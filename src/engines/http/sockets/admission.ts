import type { Socket } from 'node:net'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { ProxyProtocolSettings } from '../../../ground/exchange/connection.ts'
import type { TimerWheel } from '../time/timer-wheel.ts'
import type { ConnectionCap } from './connection-cap.ts'
import { endsOf, peerOf } from './connection-ends.ts'
import type { PortSettings } from './port-settings.ts'
import { ProxyHeaderReader } from './proxy-header-reader.ts'
import { setKeepalive } from './tcp-keepalive.ts'

/** Rules that apply to the connections of all ports. */
export interface AdmissionRules {
  /** Whether connections from this address (IPv4-mapped ones as IPv4) must begin with a PROXY header. */
  readonly expectsProxyHeader?: (address: string) => boolean
  /** Limits the client connections of all TCP ports together. If omitted, there is no limit. */
  readonly connectionCap?: ConnectionCap
}

interface AdmissionParts {
  readonly timers: TimerWheel
  /** Connections whose PROXY header or TLS handshake is under way. */
  readonly handshakes: Set<{ cut(): void }>
  readonly counters: {
    connectionsRefused: number
    connectionsUnauthorized: number
    proxyHeadersRefused: number
  }
}

const everyProxyHeader: ProxyProtocolSettings = { versions: [1, 2], isOptional: false }

/** Decides which connections of clients are served, and reads their PROXY headers. */
export class Admission {
  readonly #parts: AdmissionParts
  readonly #rules: AdmissionRules
  readonly #openCount: () => number

  /** `openCount` returns the number of open client connections. */
  constructor(parts: AdmissionParts, rules: AdmissionRules, openCount: () => number) {
    this.#parts = parts
    this.#rules = rules
    this.#openCount = openCount
  }

  /** Calls `accept` once the connection may be served; drops the connection otherwise. */
  admit(socket: Socket, settings: PortSettings, accept: (wasRead: boolean) => void): void {
    if (!this.#hasRoom()) {
      this.#drop(socket, 'connectionsRefused')
      return
    }
    setKeepalive(socket, settings.keepalive)
    const admit = (wasRead: boolean) => {
      if (settings.refusal?.(endsOf(socket)) === undefined) accept(wasRead)
      else this.#drop(socket, 'connectionsUnauthorized')
    }
    const header = this.#proxyHeaderOf(socket, settings)
    if (header === undefined) admit(false)
    else {
      const expected = { socket, settings: header }
      new ProxyHeaderReader(this.#parts, settings.limits, expected, () => admit(true))
    }
  }

  /**
   * Returns why a connection from a tunnel is refused; undefined if it may be served. It has no PROXY header, because
   * the connection of the tunnel may have had one.
   */
  refusalOfInner(socket: Socket, { refusal }: PortSettings): GatewayError | undefined {
    if (!this.#hasRoom()) {
      this.#parts.counters.connectionsRefused++
      return new GatewayError('overloaded')
    }
    const refused = refusal?.(endsOf(socket))
    if (refused === undefined) return undefined
    this.#parts.counters.connectionsUnauthorized++
    return new GatewayError('network_unauthorized', refused)
  }

  #hasRoom(): boolean {
    return this.#rules.connectionCap?.admit(this.#openCount()) !== false
  }

  #drop(socket: Socket, counter: 'connectionsRefused' | 'connectionsUnauthorized'): void {
    this.#parts.counters[counter]++
    socket.on('error', () => {})
    socket.resetAndDestroy()
  }

  /** Returns which PROXY header a connection begins with; undefined if none is read. */
  #proxyHeaderOf(socket: Socket, { proxyProtocol }: PortSettings) {
    const { expectsProxyHeader } = this.#rules
    if (expectsProxyHeader === undefined && proxyProtocol === undefined) return undefined
    const { address } = peerOf(socket)
    if (expectsProxyHeader?.(address) === true) return everyProxyHeader
    return proxyProtocol?.isSender?.(address) === false ? undefined : proxyProtocol
  }
}
