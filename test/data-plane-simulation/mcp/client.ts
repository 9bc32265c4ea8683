/** An MCP client of a world, which begins a session, calls tools, listens, cancels, breaks off and ends the session. */
import { Machine } from '../../virtual-time/world.ts'
import { type Field, statusOf, valuesOf } from '../http1-reader.ts'
import type { StreamEvent } from './events.ts'
import { McpHttp, type McpHttpOwner } from './http.ts'
import { type ItemKind, keyOf, type McpPlan, type McpStep } from './plan.ts'
import { type McpParty, McpRequest, type RequestKind, type Rpc } from './request.ts'
import { promptName, uriFor } from './served-item.ts'

export interface McpClientOwner extends Omit<McpHttpOwner, 'machine'> {
  readonly requests: Map<string, McpRequest>
  /** Ids of sessions that other clients have begun, with the client. */
  readonly sessionIds: Map<string, McpParty>
}

const legacyVersion = '2025-11-25'
const modernVersion = '2026-07-28'
const prefix = 'io.modelcontextprotocol/'
/** When the client breaks off or cancels a call. */
const patienceMs = 400
/** How long a client keeps its stream after its last request. */
const listensMs = 6_000
/** How long a client waits for a response that a server has put off, and may have forgotten. */
const resumesMs = 60_000

export class McpClient {
  readonly party: McpParty
  readonly machine: Machine
  readonly #plan: McpPlan
  readonly #owner: McpClientOwner
  readonly #http: McpHttp
  #count = 0
  sessionId: string | undefined
  isOver = false

  constructor(party: McpParty, plan: McpPlan, owner: McpClientOwner, port: number) {
    this.party = party
    this.#plan = plan
    this.#owner = owner
    this.machine = new Machine(`mcp-client${party.tag}`)
    this.#http = new McpHttp({ ...owner, machine: this.machine }, port)
  }

  describe(): string {
    const waiting = [...this.#owner.requests.values()].filter(
      ({ party, isOver }) => party === this.party && !isOver,
    )
    return `${this.party.tag} waits for ${waiting.map(({ tag, kind }) => `${kind} ${tag}`)}`
  }

  /** The process of the gateway has ended. */
  onDeath(why: string): void {
    this.#http.onDeath(why)
  }

  async run(): Promise<void> {
    const { isModern, steps, opensStream, deletes } = this.party.plan
    const isReady = isModern ? await this.#discover() : await this.#initialize()
    if (isReady) {
      const stream = opensStream && this.sessionId !== undefined ? this.#listen() : undefined
      const pending: Promise<void>[] = []
      for (const step of steps) {
        const done = this.#step(step)
        if (step.isParallel) pending.push(done)
        else await done
      }
      await Promise.all(pending)
      if (stream !== undefined) {
        await this.#wait(listensMs)
        stream.close()
        await stream.over
      }
      if (deletes && this.sessionId !== undefined) await this.#delete()
    }
    this.#http.close()
    this.isOver = true
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#owner.world.schedule(this.machine, delayMs, resolve)
    })
  }

  #request(kind: RequestKind, step?: McpStep): McpRequest {
    const request = new McpRequest(this.party, ++this.#count, kind, step)
    this.#owner.requests.set(request.tag, request)
    return request
  }

  #fields(request: McpRequest, more: readonly Field[]): Field[] {
    const { plan } = this.party
    const { hasKeys } = this.#plan
    const fields: Field[] = [
      ['Accept', 'application/json, text/event-stream'],
      ['X-Secret', request.tag],
      ...more,
    ]
    if (plan.isWriter) fields.push(['X-Role', 'writer'])
    if (hasKeys) fields.push(['Authorization', `Bearer ${keyOf(plan.principal)}`])
    return fields
  }

  #legacyFields(sessionId = this.sessionId): Field[] {
    if (sessionId === undefined) return []
    return [
      ['Mcp-Session-Id', sessionId],
      ['Mcp-Protocol-Version', legacyVersion],
    ]
  }

  #path({ tag }: McpRequest): string {
    return `/${this.#plan.name}/${tag}`
  }

  /** Posts a message; answers what servers ask meanwhile, and polls for a response that a server has put off. */
  async #post(
    request: McpRequest,
    message: Rpc,
    { sessionId = this.sessionId, onBegun }: PostOptions = {},
  ): Promise<void> {
    const { isModern } = this.party.plan
    const sent = isModern ? withEnvelope(message, request) : withTag(message, request)
    const named = isModern ? modernFields(sent) : this.#legacyFields(sessionId)
    const fields = this.#fields(request, [['Content-Type', 'application/json'], ...named])
    let last: StreamEvent | undefined
    const onEvent = (event: StreamEvent) => {
      if (event.id !== undefined) last = event
      this.#answer(event)
    }
    const body = JSON.stringify({ jsonrpc: '2.0', ...sent })
    const post = { method: 'POST', fields, body } as const
    await this.#http.send(request, this.#path(request), post, onEvent, onBegun)
    const { id, retryMs = 100 } = last ?? {}
    const isOpen = request.responses.length === 0 && request.excuse === undefined
    if (id === undefined || !isOpen || this.sessionId === undefined) return
    await this.#wait(retryMs)
    await this.#resume(request, id)
  }

  async #resume(request: McpRequest, from: string): Promise<void> {
    const resumed = this.#request('resumed')
    const fields = this.#fields(resumed, [...this.#legacyFields(), ['Last-Event-ID', from]])
    const get = { method: 'GET', fields, body: undefined } as const
    let close = () => {}
    const onBegun = (leave: (isReset: boolean) => void) => {
      close = () => leave(false)
    }
    this.#owner.world.schedule(this.machine, resumesMs, () => {
      if (resumed.isOver) return
      resumed.excuse ??= 'its client gives up'
      close()
    })
    await this.#http.send(resumed, this.#path(resumed), get, () => {}, onBegun)
    request.messages.push(...resumed.messages)
  }

  /** Answers a question of a server. */
  #answer({ data = '' }: StreamEvent): void {
    if (data === '') return
    const { id, method, params } = JSON.parse(data) as Rpc
    if (id === undefined || method === undefined) return
    const request = this.#request('answer')
    const content = { type: 'text', text: String(params?.systemPrompt) }
    const result = { role: 'assistant', content, model: 'm' }
    void this.#post(request, { id, result })
  }

  async #discover(): Promise<boolean> {
    const request = this.#request('discover')
    await this.#post(request, { id: request.id, method: 'server/discover' })
    return true
  }

  async #initialize(): Promise<boolean> {
    const request = this.#request('initialize')
    const params = {
      protocolVersion: legacyVersion,
      capabilities: this.party.plan.maySample ? { sampling: {} } : {},
      clientInfo: { name: this.party.tag, version: '1' },
    }
    await this.#post(request, { id: request.id, method: 'initialize', params })
    const [response] = request.responses
    if (response?.result === undefined || request.head === undefined) return false
    this.sessionId = valuesOf(request.head, 'mcp-session-id')[0]
    if (this.sessionId !== undefined) this.#owner.sessionIds.set(this.sessionId, this.party)
    await this.#post(this.#request('notice'), { method: 'notifications/initialized' })
    return true
  }

  #listen(): { close(): void; readonly over: Promise<void> } {
    const request = this.#request('stream')
    const fields = this.#fields(request, this.#legacyFields())
    let close = (_isReset: boolean) => {}
    const get = { method: 'GET', fields, body: undefined } as const
    const over = this.#http.send(
      request,
      this.#path(request),
      get,
      (event) => this.#answer(event),
      (leave) => {
        close = leave
      },
    )
    return {
      over,
      close: () => {
        request.excuse = 'its client has closed the stream'
        close(false)
      },
    }
  }

  async #step(step: McpStep): Promise<void> {
    const request = this.#request(step.kind, step)
    const { id } = request
    switch (step.kind) {
      case 'list':
        await this.#list(request)
        return
      case 'ping':
        if (this.party.plan.isModern) request.isOver = true
        else await this.#post(request, { id, method: 'ping' })
        return
      case 'foreign':
      case 'forged': {
        const sessionId = this.#othersSession(step.kind)
        if (sessionId === undefined) request.isOver = true
        else await this.#post(request, { id, method: 'tools/list' }, { sessionId })
        return
      }
      case 'resources':
      case 'read':
      case 'prompts':
      case 'prompt':
      case 'subscribe':
        await this.#post(request, { id, ...this.#itemMessage(step.kind, step.server.name) })
        return
      case 'cancelled call':
      case 'broken call':
        await this.#breakOff(request, step)
        return
      default:
        await this.#post(request, this.#call(request, step))
    }
  }

  /** Returns a session of another principal, or one that nobody has. */
  #othersSession(kind: 'foreign' | 'forged'): string | undefined {
    if (this.party.plan.isModern || this.#plan.isStateless) return undefined
    if (kind === 'forged') return this.sessionId?.replace(/^./, (one) => (one === 'A' ? 'B' : 'A'))
    if (!this.#plan.hasKeys) return undefined
    for (const [id, { plan }] of this.#owner.sessionIds) {
      if (plan.principal !== this.party.plan.principal) return id
    }
    return undefined
  }

  #call({ id, tag }: McpRequest, { server, tool }: McpStep): Rpc {
    const isOnly = this.#plan.servers.length === 1
    const name = isOnly ? tool : `${server.name}_${tool}`
    const params = { name, arguments: { text: tag }, _meta: { progressToken: `token ${tag}` } }
    return { id, method: 'tools/call', params }
  }

  #itemMessage(kind: ItemKind, server: string): Rpc {
    const isOnly = this.#plan.servers.length === 1
    const uri = uriFor(server, isOnly)
    switch (kind) {
      case 'resources':
        return { method: 'resources/list' }
      case 'prompts':
        return { method: 'prompts/list' }
      case 'prompt':
        return {
          method: 'prompts/get',
          params: { name: isOnly ? promptName : `${server}_${promptName}` },
        }
      default:
        return { method: `resources/${kind}`, params: { uri } }
    }
  }

  async #list(request: McpRequest): Promise<void> {
    await this.#post(request, { id: request.id, method: 'tools/list' })
    const cursor = request.responses[0]?.result?.nextCursor
    if (cursor === undefined) return
    const next = this.#request('list', request.step)
    next.isRest = true
    await this.#post(next, { id: next.id, method: 'tools/list', params: { cursor } })
  }

  async #breakOff(request: McpRequest, step: McpStep): Promise<void> {
    let close = (_isReset: boolean) => {}
    const onBegun = (leave: (isReset: boolean) => void) => {
      close = leave
    }
    const posted = this.#post(request, this.#call(request, step), { onBegun })
    await this.#wait(patienceMs)
    if (!request.isOver) {
      if (step.kind === 'broken call') {
        request.excuse = 'its client breaks off'
        close(step.isParallel)
      } else {
        request.excuse = 'its client cancels it'
        const params = { requestId: request.id, reason: request.tag }
        const notice = this.#request('notice')
        if (this.party.plan.isModern) close(false)
        else await this.#post(notice, { method: 'notifications/cancelled', params })
        notice.isOver = true
        await this.#wait(patienceMs)
        // Its connection may carry another request otherwise.
        if (!request.isOver) close(false)
      }
    }
    await posted
  }

  async #delete(): Promise<void> {
    const request = this.#request('delete')
    const fields = this.#fields(request, this.#legacyFields())
    const gone = { method: 'DELETE', fields, body: undefined } as const
    await this.#http.send(request, this.#path(request), gone, () => {})
    if (request.head === undefined || statusOf(request.head) !== 200) return
    const after = this.#request('deleted')
    await this.#post(after, { id: after.id, method: 'tools/list' })
  }
}

interface PostOptions {
  readonly sessionId?: string
  readonly onBegun?: (close: (isReset: boolean) => void) => void
}

function withTag(message: Rpc, { tag }: McpRequest): Rpc {
  if (message.method === undefined) return message
  const meta = { ...(message.params?._meta as object | undefined), 'test/tag': tag }
  return { ...message, params: { ...message.params, _meta: meta } }
}

function withEnvelope(message: Rpc, request: McpRequest): Rpc {
  const tagged = withTag(message, request)
  const { plan, tag } = request.party
  const meta = {
    ...(tagged.params?._meta as object | undefined),
    [`${prefix}protocolVersion`]: modernVersion,
    [`${prefix}clientCapabilities`]: plan.maySample ? { sampling: {} } : {},
    [`${prefix}clientInfo`]: { name: tag, version: '1' },
  }
  return { ...tagged, params: { ...tagged.params, _meta: meta } }
}

function modernFields({ method, params }: Rpc): Field[] {
  const fields: Field[] = [['Mcp-Protocol-Version', modernVersion]]
  if (method !== undefined) fields.push(['Mcp-Method', method])
  const name = params?.name ?? params?.uri
  if (typeof name === 'string') fields.push(['Mcp-Name', name])
  return fields
}
