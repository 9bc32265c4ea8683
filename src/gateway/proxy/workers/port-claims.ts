/**
 * Prevents workers from sharing a port with another process. If several workers bind one port, the system
 * lets any process of the same user bind it as well. So before the first worker binds the port, an exclusive
 * bind must show that it is free.
 */
import { createSocket } from 'node:dgram'
import { createServer, isIPv6 } from 'node:net'
import { listenHost } from '../../../ground/base/listen-hosts.ts'
import type { PortName } from './worker-messages.ts'

interface Claim {
  readonly holders: Set<number>
  readonly probe: Promise<string | undefined>
}

export class PortClaims {
  readonly #host: string
  readonly #isShared: boolean
  readonly #claims = new Map<PortName, Claim>()

  /**
   * If not `isShared`, only one worker binds each port, and its bind fails if another process has the port.
   */
  constructor(host: string, isShared: boolean) {
    this.#host = host
    this.#isShared = isShared
  }

  /** Returns why the worker must not bind the port; undefined if it may. */
  async claim(port: PortName, worker: number): Promise<string | undefined> {
    if (!this.#isShared || port === 0) return undefined
    let claim = this.#claims.get(port)
    if (claim === undefined) {
      claim = { holders: new Set(), probe: this.#probe(port) }
      this.#claims.set(port, claim)
    }
    claim.holders.add(worker)
    const problem = await claim.probe
    if (problem !== undefined) this.release(port, worker)
    return problem
  }

  async #probe(port: PortName): Promise<string | undefined> {
    return probe(await listenHost(this.#host), port)
  }

  release(port: PortName, worker: number): void {
    const claim = this.#claims.get(port)
    claim?.holders.delete(worker)
    if (claim?.holders.size === 0) this.#claims.delete(port)
  }

  /** Releases the ports of a worker that has died. */
  releaseAll(worker: number): void {
    for (const port of [...this.#claims.keys()]) this.release(port, worker)
  }
}

/** Binds the port and releases it again. Resolves to the error of the system if that fails. */
function probe(host: string, port: PortName): Promise<string | undefined> {
  if (typeof port === 'string') return probeDatagrams(host, Number.parseInt(port, 10))
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => resolve(error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

function probeDatagrams(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    socket.once('error', (error) => {
      socket.close()
      resolve(error.message)
    })
    socket.bind({ port, address: host, exclusive: true }, () => {
      socket.close(() => resolve(undefined))
    })
  })
}
