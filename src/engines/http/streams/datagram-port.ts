import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { hostAndPort } from '../../../ground/base/listen-hosts.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import { canonicalAddress } from '../sockets/canonical-address.ts'
import { DatagramSession } from './datagram-session.ts'

interface DatagramPortOptions {
  /** Port to bind; 0 selects a free one. */
  readonly port: number
  readonly bindAddress: string
  /** Whether several workers bind the port, so that the system sends each client to one of them. */
  readonly reusePort: boolean
}

/**
 * One UDP port. The datagrams from one client address are a session. Each session has its own socket
 * to a backend, to which the backend sends its replies. It ends when no datagram has passed for a
 * while.
 */
export class DatagramPort {
  readonly #parts: EngineParts
  readonly #socket: Socket
  readonly #sessions = new Map<string, DatagramSession>()
  #port = 0
  #isClosed = false

  private constructor(parts: EngineParts, socket: Socket) {
    this.#parts = parts
    this.#socket = socket
  }

  /** Binds the port. Rejects with `port_in_use`. */
  static bind(parts: EngineParts, options: DatagramPortOptions): Promise<DatagramPort> {
    const { bindAddress, port, reusePort } = options
    const type = isIPv6(bindAddress) ? 'udp6' : 'udp4'
    const ipv6Only = type === 'udp6' && bindAddress !== '::'
    const socket = createSocket({ type, reusePort, ipv6Only })
    const bound = new DatagramPort(parts, socket)
    return new Promise((resolve, reject) => {
      socket.once('error', (error: NodeJS.ErrnoException) => {
        const detail = `${hostAndPort(bindAddress, port)}/udp: ${error.code}`
        reject(new GatewayError('port_in_use', detail, error))
      })
      socket.bind({ port, address: bindAddress, exclusive: true }, () => {
        bound.#port = socket.address().port
        socket.removeAllListeners('error')
        // Network errors about single datagrams must not end the process.
        socket.on('error', () => {})
        socket.on('message', (message, from) => bound.#receive(message, from))
        resolve(bound)
      })
    })
  }

  get port(): number {
    return this.#port
  }

  #receive(message: Buffer, from: RemoteInfo): void {
    const key = `${from.address}|${from.port}`
    let session = this.#sessions.get(key)
    if (session !== undefined && !this.#parts.streamHandler.isCurrent(session)) {
      // The configuration has changed, so a new session begins, perhaps with another backend.
      session.end()
      session = undefined
    }
    if (session === undefined) {
      session = this.#open(key, from)
      if (session === undefined) return
    }
    session.receive(message)
  }

  #open(key: string, { address, port }: RemoteInfo): DatagramSession | undefined {
    const { streamLimits, streamCounters, datagramSessions } = this.#parts
    if (this.#isClosed) return undefined
    if (datagramSessions.size >= streamLimits.udpMaxSessions) {
      streamCounters.droppedDatagrams.sessions++
      return undefined
    }
    const session = new DatagramSession(this.#parts, {
      port: this.#port,
      source: { address: canonicalAddress(address), port },
      reply: (message) => this.#reply(message, address, port),
      onEnd: () => {
        if (this.#sessions.get(key) === session) this.#sessions.delete(key)
      },
    })
    this.#sessions.set(key, session)
    session.begin()
    return session
  }

  #reply(message: Buffer, address: string, port: number): void {
    if (!this.#isClosed) this.#socket.send(message, port, address, () => {})
  }

  /** Ends all sessions and closes the port. */
  close(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#isClosed = true
    for (const session of [...this.#sessions.values()]) session.end()
    return new Promise((resolve) => this.#socket.close(() => resolve()))
  }
}
