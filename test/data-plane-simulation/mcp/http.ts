/** One HTTP request of an MCP client on a connection of its own or a kept one. */
import type { Machine, World } from '../../virtual-time/world.ts'
import { linesOf } from '../exchange.ts'
import { type Field, type Message, MessageReader, valuesOf } from '../http1-reader.ts'
import type { End, Network } from '../network.ts'
import { EventReader, type StreamEvent } from './events.ts'
import { type McpRequest, partiesIn, type Rpc, serverSessionPattern } from './request.ts'

export interface McpHttpOwner {
  readonly world: World
  readonly network: Network
  readonly machine: Machine
  /** Whether clients send several requests on one connection. */
  readonly keepsConnections: boolean
  fail(invariant: 'isolation' | 'framing', text: string): void
}

interface Sent {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly fields: readonly Field[]
  readonly body: string | undefined
}

export class McpHttp {
  readonly #owner: McpHttpOwner
  readonly #port: number
  readonly #open = new Set<Connection>()
  /** Connections that no request uses. */
  readonly #idle: Connection[] = []
  #isClosed = false

  constructor(owner: McpHttpOwner, port: number) {
    this.#owner = owner
    this.#port = port
  }

  /** Resolves when the response is over. `onEvent` is called with each event; `onBegun` with the connection. */
  send(
    request: McpRequest,
    path: string,
    sent: Sent,
    onEvent: (event: StreamEvent) => void,
    onBegun: (close: (isReset: boolean) => void) => void = () => {},
  ): Promise<void> {
    const { world, network, machine } = this.#owner
    const { method, fields, body } = sent
    const own: Field[] = [['Host', 'gateway.test'], ...fields]
    if (body !== undefined) own.push(['Content-Length', String(Buffer.byteLength(body))])
    const text = `${method} ${path} HTTP/1.1\r\n${linesOf(own)}\r\n${body ?? ''}`
    request.begunAt = world.now
    return new Promise((resolve) => {
      const begin = (connection: Connection) => {
        onBegun((isReset) => connection.leave(isReset))
        connection.send(request, text, onEvent, () => {
          request.isOver = true
          if (!this.#owner.keepsConnections || this.#isClosed) connection.leave(false)
          else if (connection.isUsable) this.#idle.push(connection)
          resolve()
        })
      }
      const kept = this.#idle.pop()
      if (kept?.isUsable === true) begin(kept)
      else {
        network.connect(machine, { host: '10.0.0.1', port: this.#port }, (end) => {
          if (end === undefined) this.#owner.fail('framing', `${request.tag} is refused`)
          else begin(this.#opened(new Connection(this.#owner, end)))
        })
      }
    })
  }

  #opened(connection: Connection): Connection {
    this.#open.add(connection)
    return connection
  }

  /** The process of the gateway has ended, which excuses requests on its connections. */
  onDeath(why: string): void {
    for (const connection of this.#open) connection.excuse = why
  }

  close(): void {
    this.#isClosed = true
    for (const connection of this.#idle.splice(0)) connection.leave(false)
  }
}

class Connection {
  readonly #owner: McpHttpOwner
  readonly #end: End
  readonly #reader: MessageReader
  #request: McpRequest | undefined
  #events: EventReader | undefined
  #onEvent: (event: StreamEvent) => void = () => {}
  #onOver: () => void = () => {}
  /** Bytes of the body that were read. */
  #read = 0
  #isLost = false
  /** Why requests on this connection may get no response. */
  excuse: string | undefined

  constructor(owner: McpHttpOwner, end: End) {
    this.#owner = owner
    this.#end = end
    this.#reader = new MessageReader(
      'response',
      {
        onHead: (message) => this.#begin(message),
        onBody: (message) => this.#readEvents(message),
        onComplete: (message) => this.#complete(message),
      },
      () => '',
    )
    end.receiver = {
      onBytes: (bytes) => this.#receive(bytes),
      onEnd: () => this.leave(false),
      onReset: () => this.leave(true),
    }
    end.read()
  }

  get isUsable(): boolean {
    return !this.#isLost && this.#request === undefined
  }

  send(
    request: McpRequest,
    text: string,
    onEvent: (event: StreamEvent) => void,
    onOver: () => void,
  ): void {
    this.#request = request
    if (this.excuse !== undefined) request.excuse ??= this.excuse
    this.#onEvent = onEvent
    this.#onOver = onOver
    this.#events = undefined
    this.#read = 0
    this.#end.write(Buffer.from(text))
  }

  #receive(bytes: Buffer): void {
    const request = this.#request
    const { world } = this.#owner
    if (request !== undefined) {
      if (request.head !== undefined) {
        request.silenceMs = Math.max(request.silenceMs, world.now - request.lastAt)
      }
      request.lastAt = world.now
    }
    try {
      this.#reader.push(bytes)
    } catch (error) {
      this.#owner.fail('framing', `${request?.tag} cannot read its response: ${error}`)
    }
  }

  #begin(message: Message): void {
    const request = this.#request
    if (request === undefined) {
      this.#owner.fail('framing', `a client gets ${message.startLine} to no request`)
      return
    }
    request.head = message
    const [type = ''] = valuesOf(message, 'content-type')
    this.#events = type === 'text/event-stream' ? new EventReader() : undefined
    this.#checkParties(request, message.fields.flat().join(' '))
  }

  #readEvents(message: Message): void {
    const request = this.#request
    if (this.#events === undefined || request === undefined) return
    const text = message.body.subarray(this.#read).toString()
    this.#read = message.size
    this.#checkParties(request, text)
    for (const event of this.#events.push(text)) {
      if (event.data !== undefined && event.data !== '') this.#take(request, event.data)
      this.#onEvent(event)
    }
  }

  #complete(message: Message): void {
    const request = this.#request
    if (request === undefined) return
    const [type = ''] = valuesOf(message, 'content-type')
    this.#checkParties(request, message.body.toString())
    if (type.startsWith('application/json')) this.#take(request, message.body.toString())
    this.#owner.world.note(`${request.tag} gets ${message.startLine}: ${message.body}`)
    if (valuesOf(message, 'connection').includes('close')) this.leave(false)
    else this.#over()
  }

  #take(request: McpRequest, text: string): void {
    try {
      request.messages.push(JSON.parse(text) as Rpc)
    } catch {
      this.#owner.fail('framing', `${request.tag} gets ${text}`)
    }
  }

  /** A client gets nothing of another one, and no session of a server. */
  #checkParties({ tag, party }: McpRequest, text: string): void {
    for (const other of partiesIn(text)) {
      if (other !== party.tag) this.#owner.fail('isolation', `${tag} gets ${other}: ${text}`)
    }
    if (serverSessionPattern.test(text)) this.#owner.fail('isolation', `${tag} gets ${text}`)
  }

  #over(): void {
    this.#request = undefined
    this.#onOver()
  }

  leave(isReset: boolean): void {
    if (this.#isLost) return
    this.#isLost = true
    if (isReset) this.#end.reset()
    else this.#end.close()
    if (this.#request !== undefined) this.#over()
  }
}
