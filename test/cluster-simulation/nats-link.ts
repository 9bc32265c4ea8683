/** The connection of a process to the model of a NATS server, behind the interface of the real client. */
import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import type { MsgHdrs } from '@nats-io/transport-node'
import type { HeartbeatEntries } from '../../src/control/lease/heartbeat.ts'
import { Arrivals } from '../../src/control/log/arrivals.ts'
import { type Link, logStreams } from '../../src/control/log/nats-connection.ts'
import type { Random } from '../virtual-time/random.ts'
import type { Machine } from '../virtual-time/world.ts'
import type { NatsServer, StoredMessage, StoredObject } from './nats-server.ts'
import type { Connection, Network } from './network.ts'

interface Publication {
  readonly headers: MsgHdrs
  readonly msgID: string
  readonly expect: { readonly lastSequence: number }
}

const answerMs = 2_000
const reconnectMs = 250

export class NatsLink {
  readonly #machine: Machine
  readonly #server: NatsServer
  readonly #network: Network
  readonly #random: Random
  readonly #reconnects = new Arrivals()
  #connection: Connection | undefined
  #isClosed = false
  /** Requests that wait for a connection, as the real client keeps them. */
  #waiting: (() => void)[] = []

  constructor(machine: Machine, server: NatsServer, network: Network, random: Random) {
    this.#machine = machine
    this.#server = server
    this.#network = network
    this.#random = random
    this.#connect()
  }

  /** The link as the log uses it. */
  asLink(): Link {
    const link = {
      connection: { drain: async () => undefined, close: async () => this.close() },
      client: {
        publish: (subject: string, data: Uint8Array, { headers, msgID, expect }: Publication) =>
          this.#ask((server) => ({
            seq: server.publish({ subject, data, headers, msgID, ...expect }),
          })),
        consumers: {
          get: (_stream: string, { opt_start_seq: from }: { opt_start_seq: number }) =>
            this.#ask(() => ({ consume: async () => this.#consume(from) })),
        },
      },
      manager: {
        streams: {
          info: () => this.#ask((server) => server.info()),
          getMessage: (_stream: string, { seq }: { seq: number }) =>
            this.#ask((server) => ({ header: server.message(seq)?.headers })),
          purge: (_stream: string, { seq, filter }: { seq?: number; filter?: string }) =>
            this.#ask((server) => {
              if (seq !== undefined) server.purge(seq)
              if (filter !== undefined) server.removeObject(filter)
            }),
        },
      },
      objects: {
        create: async (bucket: string) => this.#objects(bucket),
        open: async (bucket: string) => this.#objects(bucket),
      },
      stream: logStreams.events,
      maxFrameBytes: 64 * 1024,
      reconnects: this.#reconnects,
      isConnected: () => this.#connection?.isOpen === true,
    }
    return link as unknown as Link
  }

  /** The entries of heartbeats. */
  heartbeats(key: string, lifeMs: number): HeartbeatEntries {
    const within = (timeoutMs: number) => Math.min(timeoutMs, answerMs)
    return {
      put: (text, timeoutMs) =>
        this.#ask((server) => server.putEntry(key, text), within(timeoutMs)),
      read: (timeoutMs, other = key) =>
        this.#ask((server) => server.entry(other, lifeMs), within(timeoutMs)),
      close: async () => undefined,
    }
  }

  close(): void {
    this.#isClosed = true
    this.#connection?.end('closed', this.#machine)
  }

  #connect(): void {
    if (this.#isClosed || this.#connection?.isOpen) return
    const [here, there] = [this.#machine, this.#server.machine]
    if (!there.isUp || this.#network.isCut(here, there)) {
      setTimeout(() => this.#connect(), reconnectMs)
      return
    }
    const isFirst = this.#connection === undefined
    const connection = this.#network.connect(here, there)
    this.#connection = connection
    connection.onEnd(here, () => setTimeout(() => this.#connect(), reconnectMs))
    for (const send of this.#waiting.splice(0)) send()
    if (!isFirst) this.#reconnects.announce()
  }

  /** Sends a request. Rejects if there is no answer in time; the server may have handled it. */
  #ask<Result>(handle: (server: NatsServer) => Result, timeoutMs = answerMs): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const timer = setTimeout(() => reject(new Error('timeout')), timeoutMs)
    const isAnswerLost = this.#random.chance(this.#network.loss)
    const answer = (connection: Connection, settle: () => void) => {
      if (isAnswerLost) return
      connection.send(this.#machine, () => {
        clearTimeout(timer)
        settle()
      })
    }
    const send = () => {
      const connection = this.#connection as Connection
      connection.send(this.#server.machine, () => {
        try {
          const result = handle(this.#server)
          answer(connection, () => resolve(result))
        } catch (error) {
          answer(connection, () => reject(error))
        }
      })
    }
    if (this.#connection?.isOpen) send()
    else this.#waiting.push(send)
    return promise
  }

  #consume(from: number): ConsumerMessages {
    const messages = new Messages()
    const connection = this.#connection as Connection
    let stop: () => void = () => undefined
    connection.send(this.#server.machine, () => {
      if (messages.isStopped) return
      stop = this.#server.consume(from, (message) =>
        connection.send(this.#machine, () => messages.put(message)),
      )
    })
    messages.onStop = () => stop()
    return messages as unknown as ConsumerMessages
  }

  #objects(bucket: string): object {
    return {
      list: () => this.#ask((server) => server.objects(bucket)),
      getBlob: (name: string) =>
        this.#ask(
          (server) => server.objects(bucket).find((one) => one.name === name)?.bytes ?? null,
        ),
      put: async (
        { name, metadata }: Pick<StoredObject, 'name' | 'metadata'>,
        content: ReadableStream<Uint8Array>,
      ) => {
        const parts: Uint8Array[] = []
        for await (const part of content) parts.push(part)
        const bytes = new Uint8Array(Buffer.concat(parts))
        await this.#ask((server) => server.saveObject(bucket, { name, metadata, bytes }))
      },
    }
  }
}

/** The messages of a consumer, in order, until it is stopped. */
class Messages implements AsyncIterable<JsMsg> {
  readonly #arrived: StoredMessage[] = []
  #wake: (() => void) | undefined
  isStopped = false
  onStop: () => void = () => undefined

  put(message: StoredMessage): void {
    this.#arrived.push(message)
    this.#wake?.()
  }

  stop(): void {
    if (this.isStopped) return
    this.isStopped = true
    this.onStop()
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<JsMsg> {
    while (!this.isStopped) {
      const message = this.#arrived.shift()
      if (message !== undefined) yield message as unknown as JsMsg
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}
