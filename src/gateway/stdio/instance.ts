/** A running server and the sessions that use it. */
import { randomBytes } from 'node:crypto'
import { latestLegacyVersion } from '../backends/mcp/eras/versions.ts'
import { member, textOf } from '../backends/mcp/json/node.ts'
import { notificationText, requestText } from '../backends/mcp/json-rpc.ts'
import {
  type McpNotification,
  type McpRequest,
  readRequest,
  readResponse,
  withId,
} from '../backends/mcp/message.ts'
import type { StdioServer } from '../backends/mcp/stdio/settings.ts'
import { Channel, cancelledId, type Sink } from './channel.ts'
import type { Isolation, ProcessUser } from './isolation.ts'
import type { ServerLog } from './server-log.ts'
import { ServerProcess } from './server-process.ts'

/** A session of a client of the legacy era. */
export class HostSession {
  readonly id = randomBytes(16).toString('hex')
  readonly principal: string
  readonly instance: Instance
  readonly uris = new Set<string>()
  /** Requests of the server that the client has not answered. */
  readonly asked = new Set<string>()
  #stream: Sink | undefined
  #queue: string[] = []
  lastUsed = performance.now()

  constructor(principal: string, instance: Instance) {
    this.principal = principal
    this.instance = instance
    instance.sessions.add(this)
  }

  /** Opens the stream of messages that belong to no request. The last one replaces others. */
  listen(stream: Sink): void {
    this.#stream = stream
    for (const text of this.#queue) stream.message(text)
    this.#queue = []
  }

  closeStream(stream: Sink): void {
    if (this.#stream === stream) this.#stream = undefined
  }

  push(text: string): void {
    if (this.#stream !== undefined) this.#stream.message(text)
    else if (this.#queue.length < maxQueued) this.#queue.push(text)
  }

  endStream(): void {
    this.#stream?.end('')
  }
}

/** Maximum number of messages that wait for the stream of a session. */
const maxQueued = 100
/** Maximum number of requests of a server that a client has not answered. */
const maxAsked = 100
const maxUris = 1_000

export interface InstanceParts {
  readonly server: StdioServer
  readonly isolation: Isolation
  readonly user: ProcessUser | undefined
  readonly log: ServerLog
  /** Whether the process belongs to one session. Then its messages need no separation. */
  readonly isPrivate: boolean
  /** Version of the gateway, which a shared server gets as that of its client. */
  readonly version: string
  /** `reason` is undefined if the host has stopped it. */
  onEnd(instance: Instance, reason: string | undefined): void
}

const changed = /^notifications\/(?:tools|prompts|resources)\/list_changed$/
const updated = 'notifications/resources/updated'

export class Instance {
  readonly sessions = new Set<HostSession>()
  readonly process: ServerProcess
  readonly channel: Channel
  readonly #isPrivate: boolean
  readonly #version: string
  /** The response of a shared server to `initialize`. */
  #initialized: Promise<string> | undefined
  isOver = false
  lastUsed = performance.now()

  constructor({ server, isolation, user, log, isPrivate, version, onEnd }: InstanceParts) {
    this.#isPrivate = isPrivate
    this.#version = version
    this.process = new ServerProcess(server, isolation, user, log, {
      onLine: (line) => this.channel.receive(line),
      onEnd: (reason) => {
        this.isOver = true
        const cause = this.process.isStopping ? undefined : reason
        this.channel.close(reason)
        onEnd(this, cause)
      },
    })
    const others = {
      onNotification: (message: McpNotification, latest: Sink | undefined) =>
        this.#notified(message, latest),
      onRequest: (message: McpRequest, latest: Sink | undefined) => this.#asked(message, latest),
    }
    this.channel = new Channel(this.process, server.limits.timeoutMs, others, (text) =>
      log.warn(text),
    )
  }

  get isIdle(): boolean {
    return this.sessions.size === 0 && this.channel.isIdle
  }

  // --- from clients ---

  /**
   * Begins a session with the server. A shared server is initialized once, by the host: it knows no client, so it
   * cannot ask one.
   */
  initialize(request: McpRequest, sink: Sink, session: HostSession): void {
    if (this.#isPrivate) {
      this.channel.request(request, sink, session)
      return
    }
    this.#initialized ??= this.#initializeShared()
    this.#initialized.then((text) => {
      const response = readResponse(text)
      if (response?.error !== undefined) this.#initialized = undefined
      sink.end(response === undefined ? text : withId(response, request.id))
    })
  }

  #initializeShared(): Promise<string> {
    const params = {
      protocolVersion: latestLegacyVersion,
      capabilities: {},
      clientInfo: { name: 'sluice', version: this.#version },
    }
    const request = readRequest(requestText('0', 'initialize', JSON.stringify(params)))
    return new Promise((resolve) => {
      if (request === undefined) return
      const end = (text: string) => {
        if (readResponse(text)?.error === undefined) {
          this.channel.send(notificationText('notifications/initialized'))
        }
        resolve(text)
      }
      this.channel.request(request, { message: () => {}, end }, this)
    })
  }

  /** Sends a request of a session. Returns the key by which it can be cancelled; undefined if it was answered. */
  request(message: McpRequest, sink: Sink, session: HostSession): number | undefined {
    if (!this.#isPrivate && this.#answerShared(message, sink, session)) return undefined
    return this.channel.request(message, sink, session)
  }

  /** Answers requests that would change a shared server for other sessions. */
  #answerShared(
    { id, text, method, params }: McpRequest,
    sink: Sink,
    session: HostSession,
  ): boolean {
    const done = () => {
      sink.end(`{"jsonrpc":"2.0","id":${id},"result":{}}`)
      return true
    }
    if (method === 'logging/setLevel') return done()
    const uri = textOf(text, member(params, 'uri'))
    if (uri === undefined) return false
    if (method === 'resources/subscribe' && session.uris.size < maxUris) session.uris.add(uri)
    if (method !== 'resources/unsubscribe') return false
    session.uris.delete(uri)
    const isUsed = [...this.sessions].some(({ uris }) => uris.has(uri))
    return isUsed ? done() : false
  }

  /** Receives a notification of a client. */
  notify(message: McpNotification, session: HostSession): void {
    const { method, text } = message
    if (method === 'notifications/cancelled') {
      const id = cancelledId(message)
      if (id !== undefined) this.channel.cancelOf(session, id, undefined)
    } else if (this.#isPrivate) this.channel.send(text)
  }

  /** Receives the answer of a client to a request of the server. */
  answer(id: string, text: string, session: HostSession): void {
    if (session.asked.delete(id)) this.channel.send(text)
  }

  // --- from the server ---

  #notified(message: McpNotification, latest: Sink | undefined): void {
    const { method, text, params } = message
    if (changed.test(method)) {
      for (const session of this.sessions) session.push(text)
    } else if (method === updated) {
      const uri = textOf(text, member(params, 'uri'))
      for (const session of this.sessions) {
        if (this.#isPrivate || (uri !== undefined && session.uris.has(uri))) session.push(text)
      }
    } else if (this.#isPrivate) {
      // The messages of a shared server do not name a session.
      if (latest !== undefined) latest.message(text)
      else for (const session of this.sessions) session.push(text)
    }
  }

  #asked(message: McpRequest, latest: Sink | undefined): void {
    const [session] = this.sessions
    const isKnown = this.#isPrivate && session !== undefined && session.asked.size < maxAsked
    if (!isKnown || message.method === 'ping') {
      this.channel.respondTo(message)
      return
    }
    session.asked.add(message.id)
    if (latest !== undefined) latest.message(message.text)
    else session.push(message.text)
  }
}
