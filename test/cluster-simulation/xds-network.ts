/** Streams between proxies and configuration servers, in place of gRPC. */
import { EventEmitter } from 'node:events'
import { Metadata, status } from '@grpc/grpc-js'
import type { Listen, StreamCall } from '../../src/control/xds/listener.ts'
import type { StreamOptions } from '../../src/gateway/proxy/remote/stream.ts'
import type { Machine } from '../virtual-time/world.ts'
import type { Network } from './network.ts'

type ClientStream = ReturnType<NonNullable<StreamOptions['connect']>>

interface Server {
  readonly machine: Machine
  readonly run: number
  readonly onCall: (call: StreamCall) => void
}

export class XdsNetwork {
  readonly #network: Network
  readonly #servers = new Map<string, Server>()

  constructor(network: Network) {
    this.#network = network
  }

  /** Listens under the name of a machine. */
  listenOn(machine: Machine): Listen {
    return async (_address, onCall) => {
      const server = { machine, run: machine.run, onCall }
      this.#servers.set(machine.name, server)
      const close = async () => {
        if (this.#servers.get(machine.name) === server) this.#servers.delete(machine.name)
      }
      return { address: machine.name, close }
    }
  }

  /** Opens a stream of a proxy to the server on the machine that the address names. */
  connect(from: Machine, address: string): ClientStream {
    const client = new EventEmitter()
    const server = this.#servers.get(address)
    let isOver = false
    const end = (code: status, details: string) => {
      if (isOver) return
      isOver = true
      client.emit('status', { code, details, metadata: new Metadata() })
    }
    if (server === undefined || !server.machine.isUp || server.run !== server.machine.run) {
      setTimeout(() => end(status.UNAVAILABLE, 'connection refused'), 2)
      return asStream(
        client,
        () => true,
        () => undefined,
      )
    }
    const { machine } = server
    const connection = this.#network.connect(from, machine)
    const call = new ServerCall(from.name)
    connection.onEnd(from, (why) => end(status.UNAVAILABLE, why))
    connection.onEnd(machine, () => call.leave('cancelled'))
    call.send = (bytes, sent) => {
      connection.send(from, () => {
        if (!isOver) client.emit('data', bytes)
      })
      this.#network.world.schedule(machine, 1, sent)
    }
    call.finish = (code, details) => {
      connection.send(from, () => {
        end(code, details)
        connection.end('over')
      })
    }
    connection.send(machine, () => server.onCall(call as unknown as StreamCall))
    const write = (bytes: Uint8Array) =>
      connection.send(machine, () => {
        if (!call.destroyed) call.emit('data', Buffer.from(bytes))
      })
    return asStream(client, write, () => {
      if (isOver) return
      connection.send(machine, () => call.leave('cancelled'))
      setTimeout(() => end(status.CANCELLED, 'cancelled'), 1)
    })
  }
}

function asStream(
  client: EventEmitter,
  write: (bytes: Uint8Array) => unknown,
  leave: () => void,
): ClientStream {
  const stream = {
    on: (event: string, listener: () => void) => client.on(event, listener),
    write,
    cancel: leave,
    end: leave,
  }
  return { stream, close: leave } as unknown as ClientStream
}

/** The server's side of a stream. */
class ServerCall extends EventEmitter {
  readonly metadata = new Metadata()
  destroyed = false
  send: (bytes: Uint8Array, sent: () => void) => void = () => undefined
  finish: (code: status, details: string) => void = () => undefined
  readonly #peer: string

  constructor(peer: string) {
    super()
    this.#peer = peer
    this.on('error', (error: { code?: status; details?: string }) => {
      if (this.destroyed) return
      this.destroyed = true
      this.finish(error.code ?? status.UNKNOWN, error.details ?? '')
    })
  }

  getPeer(): string {
    return `127.0.0.1:${this.#peer}`
  }

  write(bytes: Uint8Array, sent: () => void): boolean {
    if (!this.destroyed) this.send(bytes, sent)
    return true
  }

  end(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.finish(status.OK, '')
  }

  /** The client has cancelled the stream, or its connection broke. */
  leave(event: string): void {
    if (this.destroyed) return
    this.destroyed = true
    this.emit(event)
    this.emit('close')
  }
}
