/** An MCP server of a world, over HTTP/1.1: legacy with or without sessions, or modern. */
import type { Random } from '../../virtual-time/random.ts'
import type { Machine, World } from '../../virtual-time/world.ts'
import { type Message, MessageReader, valuesOf } from '../http1-reader.ts'
import type { Server } from '../http1-upstream.ts'
import type { End } from '../network.ts'
import { eventText } from './events.ts'
import { type McpServerPlan, tools } from './plan.ts'
import { type McpRequest, partiesIn, type Rpc, requestIn } from './request.ts'
import { ServedCall } from './served-call.ts'
import { serveItem } from './served-item.ts'

export interface McpServerOwner {
  readonly world: World
  readonly random: Random
  readonly requests: ReadonlyMap<string, McpRequest>
  /** Number of servers of the backend. */
  readonly count: number
  fail(invariant: 'isolation' | 'protection' | 'framing' | 'accounts', text: string): void
}

/** A session of a client at the server. */
export interface ServerSession {
  readonly id: string
  /** Tag of the client that uses it; undefined before the first message that names one. */
  party: string | undefined
  isDeleted: boolean
  isForgotten: boolean
  /** Calls that wait for an answer of the client, by the id of the question. */
  readonly questions: Map<string, (answer: Rpc) => void>
  /** What is left of streams that were closed to be polled, by the id of their last event. */
  readonly polled: Map<string, string>
  /** URIs to which the client has subscribed. */
  readonly subscribed: Set<string>
  /** Sends a notification on the stream of the session; undefined while none is open. */
  notify: ((notification: object) => void) | undefined
  readonly begunAt: number
}

export class McpServer {
  readonly plan: McpServerPlan
  readonly owner: McpServerOwner
  readonly machine: Machine
  readonly sessions = new Map<string, ServerSession>()
  #count = 0

  constructor(plan: McpServerPlan, machine: Machine, owner: McpServerOwner) {
    this.plan = plan
    this.machine = machine
    this.owner = owner
    if (plan.forgetsAt === undefined) return
    owner.world.schedule(machine, plan.forgetsAt, () => {
      owner.world.note('forgets its sessions')
      for (const session of this.sessions.values()) session.isForgotten = true
    })
  }

  begin(party: string | undefined): ServerSession {
    const id = `sid-${this.plan.name}-${++this.#count}`
    const session: ServerSession = {
      id,
      party,
      isDeleted: false,
      isForgotten: false,
      questions: new Map(),
      polled: new Map(),
      subscribed: new Set(),
      notify: undefined,
      begunAt: this.owner.world.now,
    }
    this.sessions.set(id, session)
    return session
  }

  /** Returns the session of a request, which must be the one of the client that it names. */
  sessionOf(message: Message): ServerSession | undefined {
    const [id = ''] = valuesOf(message, 'mcp-session-id')
    const session = this.sessions.get(id)
    if (session === undefined) {
      if (id !== '')
        this.owner.fail('isolation', `${this.plan.name} gets the unknown session ${id}`)
      return undefined
    }
    if (!session.isForgotten && !session.isDeleted) return session
    return undefined
  }

  serve(server: Server, end: End): void {
    new McpConnection(this, server, end)
  }
}

const json = 'application/json'

const itemCapabilities = ({ hasItems }: McpServerPlan): object =>
  hasItems ? { resources: { subscribe: true }, prompts: {} } : {}

/** One connection of a server. */
export class McpConnection {
  readonly server: McpServer
  readonly #open: Server
  readonly #end: End
  isOver = false

  constructor(server: McpServer, open: Server, end: End) {
    this.server = server
    this.#open = open
    this.#end = end
    const reader = new MessageReader(
      'request',
      { onHead: () => {}, onComplete: (message) => this.#serve(message) },
      () => '',
    )
    end.receiver = {
      onBytes: (bytes) => {
        try {
          if (!this.isOver) reader.push(bytes)
        } catch (error) {
          server.owner.fail('framing', `${server.plan.name} cannot read a request: ${error}`)
        }
      },
      onEnd: () => this.leave(),
      onReset: () => this.leave(),
    }
  }

  later(delayMs: number, work: () => void): void {
    this.server.owner.world.schedule(this.server.machine, delayMs, () => {
      if (!this.isOver) work()
    })
  }

  write(text: string): void {
    this.#end.write(Buffer.from(text))
  }

  reply(status: number, type: string | undefined, body: string, fields = ''): void {
    const typed = type === undefined ? '' : `Content-Type: ${type}\r\n`
    const length = status === 204 ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
    this.write(`HTTP/1.1 ${status} Some Reason\r\n${typed}${length}${fields}\r\n${body}`)
  }

  replyJson(message: object, status = 200, fields = ''): void {
    this.reply(status, json, JSON.stringify({ jsonrpc: '2.0', ...message }), fields)
  }

  beginEvents(): void {
    this.write(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
  }

  sendEvent(event: Parameters<typeof eventText>[0]): void {
    const text = eventText(event)
    this.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
  }

  endEvents(): void {
    this.write('0\r\n\r\n')
  }

  leave(isReset = false): void {
    if (this.isOver) return
    this.isOver = true
    if (isReset) this.#end.reset()
    else this.#end.close()
    this.#open.open--
  }

  #serve(message: Message): void {
    const { owner, plan } = this.server
    const [method = ''] = message.startLine.split(' ')
    this.#checkFields(message)
    const text = message.body.toString()
    owner.world.note(`${plan.name} gets ${method} ${text.slice(0, 120)}`)
    if (owner.world.now < (plan.isUpAt ?? 0)) {
      const request = requestIn(owner.requests, text)
      if (request !== undefined && text.includes('"tools/call"')) {
        request.arrivals++
        request.refused++
      }
      this.reply(503, 'text/plain', 'starting')
      return
    }
    const session = this.server.sessionOf(message)
    if (session !== undefined) this.#checkParty(message, text, session)
    if (method === 'GET') this.#stream(message, session)
    else if (method === 'DELETE') this.#delete(session)
    else this.#post(message, JSON.parse(text) as Rpc, session)
  }

  /** Several servers get no header that may be a credential for one of them. */
  #checkFields(message: Message): void {
    const { owner, plan } = this.server
    if (owner.count === 1) return
    for (const name of ['x-secret', 'x-role', 'authorization', 'cookie']) {
      const [value] = valuesOf(message, name)
      if (value !== undefined) owner.fail('protection', `${plan.name} gets ${name}: ${value}`)
    }
  }

  #checkParty(message: Message, text: string, session: ServerSession): void {
    const { owner, plan } = this.server
    for (const tag of partiesIn(`${message.fields.flat().join(' ')} ${text}`)) {
      session.party ??= tag
      if (tag === session.party) continue
      owner.fail('isolation', `${plan.name} gets ${tag} in the session of ${session.party}`)
    }
  }

  #delete(session: ServerSession | undefined): void {
    if (session !== undefined) session.isDeleted = true
    this.reply(session === undefined ? 404 : 200, undefined, '')
  }

  #stream(message: Message, session: ServerSession | undefined): void {
    const { plan, owner } = this.server
    const [from] = valuesOf(message, 'last-event-id')
    if (session === undefined) this.reply(plan.era === 'sessions' ? 404 : 405, undefined, '')
    else if (from !== undefined && session.polled.has(from)) {
      this.beginEvents()
      this.sendEvent({ id: `${from}-end`, data: session.polled.get(from) })
      this.endEvents()
    } else if (plan.stream !== 'open') this.reply(plan.stream, undefined, '')
    else {
      this.beginEvents()
      session.notify = (notification) => {
        const data = JSON.stringify({ jsonrpc: '2.0', ...notification })
        if (!this.isOver && !hasEnded) this.sendEvent({ data })
      }
      let hasEnded = false
      for (let count = owner.random.below(4); count > 0; count--) {
        this.later(owner.random.between(0, 4_000), () => {
          const params = { level: 'info', data: `${session.party} ${plan.name}` }
          const notification = { jsonrpc: '2.0', method: 'notifications/message', params }
          this.sendEvent({ id: `e${count}`, data: JSON.stringify(notification) })
        })
      }
      if (owner.random.chance(0.3)) {
        this.later(owner.random.between(4_000, 8_000), () => {
          hasEnded = true
          this.endEvents()
        })
      }
    }
  }

  #post(message: Message, rpc: Rpc, session: ServerSession | undefined): void {
    const { plan, owner } = this.server
    const { id, method = '' } = rpc
    const request = requestIn(owner.requests, JSON.stringify(rpc))
    const isCall = method === 'tools/call'
    if (isCall && request !== undefined) request.arrivals++
    if (plan.era === 'modern' && !this.#isModern(message, rpc)) return
    if (plan.era === 'sessions' && method !== 'initialize' && session === undefined) {
      if (isCall && request !== undefined) request.refused++
      const isKnown = valuesOf(message, 'mcp-session-id').length > 0
      const error = { code: -32001, message: isKnown ? 'Session not found' : 'Missing session ID' }
      this.replyJson({ id: null, error }, isKnown ? 404 : 400)
      return
    }
    if (id === undefined) {
      const { status, type, body } = plan.notice
      this.reply(status, type, body)
    } else if (method === '') this.#answered(rpc, session)
    else this.#request(rpc, id, session, request)
  }

  /** Refuses requests without an envelope, as modern servers do. */
  #isModern(message: Message, { id, params, method }: Rpc): boolean {
    const meta = params?._meta as Record<string, unknown> | undefined
    const isModern = meta?.['io.modelcontextprotocol/protocolVersion'] === '2026-07-28'
    if (isModern && valuesOf(message, 'mcp-method')[0] === method) return true
    const data = { supported: ['2026-07-28'], requested: '' }
    const error = { code: -32022, message: 'Unsupported protocol version', data }
    this.replyJson({ id: id ?? null, error }, 400)
    return false
  }

  #answered(rpc: Rpc, session: ServerSession | undefined): void {
    const { owner, plan } = this.server
    const go = session?.questions.get(String(rpc.id))
    if (go === undefined) owner.fail('isolation', `${plan.name} gets an answer to no question`)
    this.reply(202, undefined, '')
    session?.questions.delete(String(rpc.id))
    go?.(rpc)
  }

  #request(
    rpc: Rpc,
    id: string | number,
    session: ServerSession | undefined,
    request: McpRequest | undefined,
  ): void {
    const { plan, owner } = this.server
    const isModern = plan.era === 'modern'
    const complete = isModern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {}
    switch (rpc.method) {
      case 'initialize': {
        const [party] = partiesIn(JSON.stringify(rpc))
        const created = plan.era === 'sessions' ? this.server.begin(party) : undefined
        const { protocolVersion } = rpc.params ?? {}
        const capabilities = { tools: {}, logging: {}, ...itemCapabilities(plan) }
        const serverInfo = { name: plan.name, version: '1' }
        const fields = created === undefined ? '' : `Mcp-Session-Id: ${created.id}\r\n`
        this.replyJson({ id, result: { protocolVersion, capabilities, serverInfo } }, 200, fields)
        return
      }
      case 'server/discover':
        if (!isModern) break
        this.replyJson({
          id,
          result: {
            ...complete,
            supportedVersions: ['2026-07-28'],
            capabilities: { tools: {}, ...itemCapabilities(plan) },
            serverInfo: { name: plan.name, version: '1' },
          },
        })
        return
      case 'ping':
        this.replyJson({ id, result: {} })
        return
      case 'tools/list': {
        const isFirst = plan.hasPages && rpc.params?.cursor === undefined
        const named = tools.map((name) => ({
          name,
          description: request?.party.tag ?? '',
          inputSchema: { type: 'object' },
        }))
        const [first, ...rest] = named
        const page = isFirst ? { tools: [first], nextCursor: 'next' } : { tools: named }
        const result = plan.hasPages && !isFirst ? { tools: rest } : page
        this.replyJson({ id, result: { ...complete, ...result } })
        return
      }
      case 'tools/call':
        if (request === undefined) owner.fail('framing', `${plan.name} gets a call of no request`)
        else new ServedCall(this, rpc, request, session, complete).serve()
        return
      default:
        if (serveItem(this, rpc, request, session, complete)) return
    }
    const status = plan.era === 'plain' || isModern ? 404 : 200
    this.replyJson({ id, error: { code: -32601, message: 'Method not found' } }, status)
  }
}
