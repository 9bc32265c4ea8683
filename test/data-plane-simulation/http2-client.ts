/** An HTTP/2 client connection of a world, which sends requests as real clients do, and badly. */
import { Machine } from '../virtual-time/world.ts'
import type { Exchange } from './exchange.ts'
import type { ClientOwner, ClientPlan } from './http1-client.ts'
import { type Field, Message } from './http1-reader.ts'
import { Http2Peer, type PeerOwner } from './http2-peer.ts'
import { ClientSessions } from './sessions.ts'

/** Error code CANCEL. */
const cancel = 0x8

export class Http2Client {
  readonly name: string
  readonly machine: Machine
  readonly #owner: ClientOwner
  readonly #plan: ClientPlan
  readonly #exchanges = new Map<number, Exchange>()
  readonly #messages = new Map<number, Message>()
  readonly #sessions = new ClientSessions()
  #peer: Http2Peer | undefined
  #begun = 0
  #over = 0
  isOver = false

  constructor(name: string, plan: ClientPlan, owner: ClientOwner) {
    this.name = name
    this.machine = new Machine(name)
    this.#plan = plan
    this.#owner = owner
  }

  /** Says what the client waits for. */
  describe(): string {
    const waiting = [...this.#exchanges.values()].map(({ tag }) => tag)
    return `${this.name} still waits for ${waiting.join(', ')}`
  }

  connect(port: number): void {
    const { world, network, random } = this.#owner
    const { gateway } = this.#owner
    network.connect(this.machine, { host: '10.0.0.1', port }, (end) => {
      if (end === undefined) {
        this.#owner.fail(`${this.name} is refused by port ${port}`)
        return
      }
      const owner: PeerOwner = {
        world,
        random,
        onHead: (stream, fields, isLast) => this.#onHead(stream, fields, isLast),
        onData: (stream, bytes, isLast) => this.#onData(stream, bytes, isLast),
        onReset: (stream, code) => this.#onReset(stream, code),
        onSentData: (stream, bytes) =>
          this.#exchanges.get(stream)?.held.read(bytes, network.writesOf(gateway)),
        onGoAway: (last, code) =>
          world.note(`the gateway goes away after stream ${last} with ${code}`),
        onClose: () => this.#lost(),
        fail: (text) => this.#owner.fail(`${this.name}: ${text}`),
      }
      const window = random.pick([1_000, 16_000, 65_535, 65_535, 1_000_000])
      const settings = { window, windowPauseMs: this.#plan.readPauseMs / 10 }
      this.#peer = new Http2Peer('client', end, settings, owner)
      end.onSent = () => {
        for (const exchange of this.#plan.exchanges) exchange.onSent()
      }
      const { fault } = this.#plan
      if (fault !== undefined) this.#later(random.between(0, 1_000), () => this.#fail(fault.kind))
      this.#sendNext()
    })
  }

  #sendNext(): void {
    const { exchanges, isPipelined } = this.#plan
    while (!this.isOver && (isPipelined || this.#begun === this.#over)) {
      const exchange = exchanges[this.#begun]
      if (exchange === undefined) return
      this.#send(exchange, 2 * this.#begun + 1)
      this.#begun++
    }
  }

  #send(exchange: Exchange, stream: number): void {
    this.#exchanges.set(stream, exchange)
    exchange.begunAt = this.#owner.world.now
    const { method, path, fields, framing, body, trailers } = exchange.request
    const all: Field[] = [
      [':method', method],
      [':scheme', 'http'],
      [':authority', 'gateway.test'],
      [':path', path],
      ...fields
        .filter(([name]) => name !== 'Host')
        .map(([name, value]): Field => [name.toLowerCase(), value]),
    ]
    const session = this.#sessions.fieldFor(exchange)
    if (session !== undefined) all.push([session[0].toLowerCase(), session[1]])
    if (framing === 'length') all.push(['content-length', String(body.length)])
    const hasBody = framing !== 'none'
    this.#peer?.sendHead(stream, all, !hasBody)
    const lower = trailers.map(([name, value]): Field => [name.toLowerCase(), value])
    const finish = () => {
      if (lower.length > 0) this.#peer?.sendHead(stream, lower, true)
      exchange.isSent = true
    }
    if (hasBody) this.#sendBody(stream, body, lower.length === 0, finish)
    else exchange.isSent = true
  }

  #sendBody(stream: number, bytes: Buffer, isLast: boolean, onSent: () => void): void {
    if (!this.#exchanges.has(stream)) return
    const { random } = this.#owner
    const { pauseMs } = this.#plan
    const size =
      pauseMs === 0 ? bytes.length : Math.min(bytes.length, 1 + random.below(bytes.length + 1))
    const rest = bytes.subarray(size)
    const isWhole = rest.length === 0
    this.#peer?.sendData(stream, bytes.subarray(0, size), isWhole && isLast, () => {
      if (isWhole) onSent()
      else
        this.#later(random.between(0, pauseMs), () => this.#sendBody(stream, rest, isLast, onSent))
    })
  }

  #onHead(stream: number, fields: readonly Field[], isLast: boolean): void {
    const exchange = this.#exchanges.get(stream)
    if (exchange === undefined) return
    const message = this.#messages.get(stream)
    if (message !== undefined) {
      message.trailers = fields
      if (!isLast) this.#owner.fail(`${this.name} gets trailers that do not end ${exchange.tag}`)
      this.#complete(stream)
      return
    }
    const status = fields.find(([name]) => name === ':status')?.[1] ?? ''
    const head = new Message(`HTTP/2 ${status} `, fields)
    if (Number(status) < 200) {
      exchange.informational.push(head)
      return
    }
    exchange.held.stop()
    exchange.responses.push(head)
    this.#sessions.received(exchange, head, this.#owner.world.now)
    this.#messages.set(stream, head)
    if (isLast) this.#complete(stream)
  }

  #onData(stream: number, bytes: Buffer, isLast: boolean): void {
    const message = this.#messages.get(stream)
    message?.add(bytes)
    if (isLast) this.#complete(stream)
  }

  #complete(stream: number): void {
    const message = this.#messages.get(stream)
    if (message !== undefined) message.isComplete = true
    this.#end(stream)
  }

  #onReset(stream: number, code: number): void {
    const exchange = this.#exchanges.get(stream)
    if (exchange === undefined) return
    this.#owner.world.note(`the gateway resets ${exchange.tag} with ${code}`)
    this.#end(stream)
  }

  #end(stream: number): void {
    if (!this.#exchanges.delete(stream)) return
    this.#peer?.forget(stream)
    this.#over++
    if (this.#over === this.#plan.exchanges.length) this.#finish('close')
    else this.#sendNext()
  }

  /** A client that goes: all at once, or stream by stream. */
  #fail(kind: string): void {
    const excuse = `its client does: ${kind}`
    if (kind === 'stop reading') {
      for (const [stream, exchange] of [...this.#exchanges]) {
        exchange.excuse ??= excuse
        this.#peer?.reset(stream, cancel)
        this.#end(stream)
      }
      return
    }
    for (const exchange of this.#plan.exchanges) {
      const isOver = exchange.responses[0]?.isComplete === true
      if (!isOver) exchange.excuse ??= excuse
    }
    this.#finish(kind === 'close' ? 'close' : 'reset')
  }

  /** Excuses what was not over when the process of the gateway ended. */
  onDeath(why: string): void {
    if (this.#peer === undefined) return
    for (const exchange of this.#plan.exchanges) {
      if (exchange.responses[0]?.isComplete !== true) exchange.excuse ??= why
    }
  }

  #lost(): void {
    this.#owner.world.note('is closed by the gateway')
    this.isOver = true
  }

  #finish(kind: 'close' | 'reset'): void {
    if (this.isOver) return
    this.isOver = true
    this.#peer?.close(kind)
  }

  #later(delayMs: number, work: () => void): void {
    this.#owner.world.schedule(this.machine, delayMs, () => {
      if (!this.isOver) work()
    })
  }
}
