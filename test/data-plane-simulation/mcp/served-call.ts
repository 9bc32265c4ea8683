/** A call of a tool at a server of a world, which does with it what the plan of the client says. */
import { mayUse, type Tool } from './plan.ts'
import type { McpRequest, Rpc } from './request.ts'
import type { McpConnection, ServerSession } from './server.ts'

/** Longer than the gateway leaves a stream without a comment. */
const longMs = 34_000

export class ServedCall {
  readonly #connection: McpConnection
  readonly #rpc: Rpc
  readonly #request: McpRequest
  readonly #session: ServerSession | undefined
  /** Members of every result of this revision. */
  readonly #complete: object

  constructor(
    connection: McpConnection,
    rpc: Rpc,
    request: McpRequest,
    session: ServerSession | undefined,
    complete: object,
  ) {
    this.#connection = connection
    this.#rpc = rpc
    this.#request = request
    this.#session = session
    this.#complete = complete
  }

  serve(): void {
    this.#check()
    const { step } = this.#request
    if (step === undefined) return
    const connection = this.#connection
    connection.later(step.delayMs, () => {
      this.#request.isServed = true
      this.#act(step.style)
    })
  }

  /** A call arrives once, at the server that it names, and only if the rules let it pass. */
  #check(): void {
    const { owner, plan } = this.#connection.server
    const { tag, step, party, arrivals, refused } = this.#request
    if (step === undefined || step.server.name !== plan.name) {
      owner.fail('isolation', `${tag}: ${plan.name} gets a call of another server`)
      return
    }
    const name = this.#rpc.params?.name
    if (name !== step.tool) owner.fail('isolation', `${tag}: ${plan.name} gets the tool ${name}`)
    if (!mayUse(name as Tool, party.plan.isWriter)) {
      owner.fail('protection', `${tag}: ${plan.name} gets the tool ${name}, which the rules refuse`)
    }
    if (arrivals - refused > 1) owner.fail('accounts', `${tag}: ${plan.name} gets the call again`)
  }

  get #id(): string | number {
    return this.#rpc.id ?? ''
  }

  #result(more = ''): object {
    const { plan } = this.#connection.server
    const text = `${this.#request.tag} at ${plan.name}${more}`
    return { id: this.#id, result: { ...this.#complete, content: [{ type: 'text', text }] } }
  }

  #act(style: string): void {
    const connection = this.#connection
    switch (style) {
      case 'silence':
        return
      case 'reset':
        connection.leave(true)
        return
      case 'garbage':
        connection.reply(200, 'application/json', `{"jsonrpc":"2.0","id":"${this.#request.tag}`)
        return
      case 'cut':
        connection.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n')
        connection.write('Content-Length: 1000\r\n\r\n{"jsonrpc":')
        connection.leave()
        return
      case 'refused': {
        const message = `session_length of ${this.#request.tag} must be positive`
        connection.replyJson({ id: this.#id, error: { code: -32602, message } }, 400)
        return
      }
      case 'json':
        connection.replyJson(this.#result())
        return
      case 'number as text':
        connection.replyJson({ ...this.#result(), id: String(this.#id) })
        return
      default:
        connection.beginEvents()
        this.#stream(style)
    }
  }

  #send(message: object, id?: string): void {
    this.#connection.sendEvent({ id, data: JSON.stringify({ jsonrpc: '2.0', ...message }) })
  }

  #finish(more = ''): void {
    this.#send(this.#result(more))
    this.#connection.endEvents()
  }

  #stream(style: string): void {
    const connection = this.#connection
    const { random } = connection.server.owner
    const { tag } = this.#request
    const token = (this.#rpc.params?._meta as { progressToken?: unknown } | undefined)
      ?.progressToken
    const params = { progressToken: token, progress: 1, message: tag }
    if (style === 'polled') this.#poll()
    else if (style === 'asks') this.#ask()
    else if (style === 'long') connection.later(longMs, () => this.#finish())
    else {
      if (token !== undefined) this.#send({ method: 'notifications/progress', params })
      connection.later(random.between(0, 300), () => this.#finish())
    }
  }

  /** Ends the stream before the response, which the receiver asks for. */
  #poll(): void {
    const { random } = this.#connection.server.owner
    const id = `p-${this.#request.tag}`
    this.#session?.polled.set(id, JSON.stringify({ jsonrpc: '2.0', ...this.#result() }))
    this.#connection.sendEvent({ id, retryMs: Math.floor(random.between(20, 900)), data: '' })
    this.#connection.endEvents()
  }

  #ask(): void {
    const question = `ask ${this.#request.tag}`
    const params = { messages: [], maxTokens: 10, systemPrompt: this.#request.tag }
    this.#session?.questions.set(question, ({ result, error }) => {
      const isOwn = error !== undefined || JSON.stringify(result).includes(this.#request.tag)
      if (!isOwn) {
        this.#connection.server.owner.fail('isolation', `${this.#request.tag}: another answer`)
      }
      if (!this.#connection.isOver) this.#finish(error === undefined ? ' answered' : ' refused')
    })
    this.#send({ id: question, method: 'sampling/createMessage', params })
  }
}
