/** A client connection of a world, which sends requests as real clients do, and badly. */
import type { Random } from '../virtual-time/random.ts'
import { Machine, type World } from '../virtual-time/world.ts'
import { type Exchange, framedBody, framingField, linesOf } from './exchange.ts'
import { type Message, MessageReader, statusOf, valuesOf } from './http1-reader.ts'
import type { End, Network } from './network.ts'
import { ClientSessions } from './sessions.ts'

/** What a client does wrong, and after how many bytes of its requests. */
interface ClientFault {
  readonly kind: 'reset' | 'close' | 'stop reading'
  readonly afterBytes: number
}

export interface ClientPlan {
  readonly exchanges: readonly Exchange[]
  /** Whether requests are sent before the responses to earlier ones have arrived. */
  readonly isPipelined: boolean
  /** Longest pause between two pieces of the requests; 0 to send each request at once. */
  readonly pauseMs: number
  /** Pauses between reads. */
  readonly readPauseMs: number
  readonly fault: ClientFault | undefined
}

export interface ClientOwner {
  readonly world: World
  readonly network: Network
  readonly random: Random
  readonly gateway: Machine
  fail(text: string): void
}

/** Bytes of the body of a refused request that the gateway reads, so that the connection can be used again. */
export const discardLimit = 65_536

/** A slow client reads quickly after so many pauses, so that its end does not take hours. */
const mostReadPauses = 200

export class Http1Client {
  readonly name: string
  readonly machine: Machine
  readonly #owner: ClientOwner
  readonly #plan: ClientPlan
  readonly #reader: MessageReader
  readonly #sessions = new ClientSessions()
  #end: End | undefined
  /** Number of exchanges whose final response has arrived. */
  #responded = 0
  /** Number of exchanges whose request was begun. */
  #begun = 0
  #written = 0
  #readPauses = 0
  #isWriting = false
  /** Called when 100 (Continue) or a final response has arrived, or after a time. */
  #onContinue: (() => void) | undefined
  isOver = false

  constructor(name: string, plan: ClientPlan, owner: ClientOwner) {
    this.name = name
    this.machine = new Machine(name)
    this.#plan = plan
    this.#owner = owner
    this.#reader = new MessageReader(
      'response',
      {
        onHead: (message) => this.#begin(message),
        onComplete: (message) => this.#received(message),
      },
      () => this.#current?.request.method ?? '',
    )
  }

  get #current(): Exchange | undefined {
    return this.#plan.exchanges[this.#responded]
  }

  /** Says what the client waits for. */
  describe(): string {
    const { unfinished } = this.#reader
    const part = unfinished === undefined ? '' : `, of which it has ${unfinished.size} bytes`
    return `${this.name} still waits for the response to ${this.#current?.tag}${part}`
  }

  connect(port: number): void {
    const { network, gateway } = this.#owner
    const to = { host: '10.0.0.1', port }
    network.connect(this.machine, to, (end) => {
      if (end === undefined) {
        this.#owner.fail(`${this.name} is refused by port ${port}`)
        return
      }
      this.#end = end
      end.onRead = (bytes) =>
        this.#plan.exchanges[this.#begun - 1]?.held.read(bytes, network.writesOf(gateway))
      end.onSent = () => this.#onSent()
      end.receiver = {
        onBytes: (bytes) => this.#receive(bytes),
        onEnd: () => this.#lost(true),
        onReset: () => this.#lost(false),
      }
      end.read()
      this.#sendNext()
    })
  }

  /** The gateway drops the rest of a request that it has responded to. */
  #onSent(): void {
    for (const exchange of this.#plan.exchanges) exchange.onSent()
    for (const exchange of this.#plan.exchanges.slice(0, this.#begun)) exchange.held.stop()
  }

  #receive(bytes: Buffer): void {
    if (this.isOver) return
    this.#read(() => this.#reader.push(bytes))
    const { readPauseMs } = this.#plan
    if (readPauseMs === 0 || this.isOver || this.#readPauses++ > mostReadPauses) return
    this.#end?.pause()
    this.#later(this.#owner.random.between(0, readPauseMs), () => this.#end?.read())
  }

  #read(read: () => void): void {
    try {
      read()
    } catch (error) {
      this.#owner.fail(`${this.name} cannot read what the gateway sends: ${error}`)
    }
  }

  #begin(message: Message): void {
    const exchange = this.#current
    if (exchange === undefined) {
      this.#owner.fail(`${this.name} gets a response to no request: ${message.startLine}`)
      return
    }
    if (statusOf(message) >= 200) {
      exchange.responses.push(message)
      this.#sessions.received(exchange, message, this.#owner.world.now)
    } else exchange.informational.push(message)
    this.#continue()
  }

  #continue(): void {
    const go = this.#onContinue
    this.#onContinue = undefined
    go?.()
  }

  #received(message: Message): void {
    const { startLine, fields } = message
    this.#owner.world.note(
      `gets ${startLine} ${fields.map((field) => field.join(': ')).join(', ')}`,
    )
    if (statusOf(message) < 200) return
    this.#responded++
    if (valuesOf(message, 'connection').some((value) => /\bclose\b/i.test(value))) {
      this.#excuseRest('an earlier response has closed the connection')
      this.#finish()
    } else if (this.#responded === this.#plan.exchanges.length) this.#finish()
    else this.#sendNext()
  }

  /** Excuses what was not over when the process of the gateway ended. */
  onDeath(why: string): void {
    if (this.#end !== undefined) this.#excuseRest(why)
  }

  /** The checks say whether the current response may be cut off; those after it cannot arrive. */
  #cutOff(): void {
    const current = this.#current
    if (current !== undefined) current.isCutOff = true
    for (const exchange of this.#plan.exchanges.slice(this.#responded + 1)) {
      exchange.excuse ??= 'an earlier response was cut off'
    }
  }

  #excuseRest(why: string): void {
    for (const exchange of this.#plan.exchanges.slice(this.#responded)) exchange.excuse ??= why
  }

  #lost(isOrderly: boolean): void {
    if (this.isOver) return
    this.#owner.world.note(`is ${isOrderly ? 'closed' : 'reset'} by the gateway`)
    const { hasPart } = this.#reader
    if (isOrderly && hasPart) {
      try {
        // A body that ends with its connection is whole now.
        this.#reader.finish()
        if (this.isOver) return
        this.#excuseRest('an earlier response has ended the connection')
      } catch {
        this.#cutOff()
      }
    } else if (hasPart) this.#cutOff()
    const current = this.#current
    if (current?.processing?.ending !== undefined && current.arrivals.length > 0) this.#cutOff()
    const before = this.#plan.exchanges[this.#responded - 1]
    // The length of a chunked body shows only when it is over, after the response.
    if (before?.request.framing === 'chunked' && before.request.body.length > discardLimit) {
      this.#excuseRest('the body of a refused request was too long to be read')
    }
    this.#finish()
  }

  #sendNext(): void {
    if (this.#isWriting || this.isOver) return
    const { exchanges, isPipelined } = this.#plan
    const exchange = exchanges[this.#begun]
    if (exchange === undefined || (!isPipelined && this.#begun > this.#responded)) return
    this.#begun++
    this.#isWriting = true
    exchange.begunAt = this.#owner.world.now
    const { method, path, fields, framing, body, trailers, expectsContinue } = exchange.request
    const all = [...fields, ...framingField(framing, body)]
    const session = this.#sessions.fieldFor(exchange)
    if (session !== undefined) all.push(session)
    if (expectsContinue) all.push(['Expect', '100-continue'])
    const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${linesOf(all)}\r\n`)
    const framed = framedBody(this.#owner.random, framing, body, trailers)
    const finish = () => {
      exchange.isSent = true
      this.#isWriting = false
      this.#sendNext()
    }
    if (!expectsContinue) this.#send(Buffer.concat([head, framed]), finish)
    else {
      this.#send(head, () => {
        this.#onContinue = () => this.#send(framed, finish)
        this.#later(5_000, () => this.#continue())
      })
    }
  }

  #send(bytes: Buffer, onSent: () => void): void {
    if (this.isOver) return
    const { pauseMs, fault } = this.#plan
    const { random } = this.#owner
    let size =
      pauseMs === 0 ? bytes.length : Math.min(bytes.length, 1 + random.below(bytes.length + 1))
    if (fault !== undefined && this.#written + size > fault.afterBytes) {
      size = Math.max(0, fault.afterBytes - this.#written)
      this.#end?.write(bytes.subarray(0, size))
      this.#fail(fault)
      return
    }
    this.#written += size
    const rest = bytes.subarray(size)
    const go = () => {
      if (rest.length === 0) onSent()
      else this.#later(random.between(0, pauseMs), () => this.#send(rest, onSent))
    }
    if (this.#end?.write(bytes.subarray(0, size), go) === true) go()
  }

  #fail({ kind }: ClientFault): void {
    this.#excuseRest(`its client does: ${kind}`)
    if (kind === 'reset') this.#end?.reset()
    else if (kind === 'close') this.#end?.close()
    else {
      this.#end?.pause()
      this.#later(20_000, () => this.#finish())
      return
    }
    this.#finish()
  }

  #later(delayMs: number, work: () => void): void {
    this.#owner.world.schedule(this.machine, delayMs, () => {
      if (!this.isOver) work()
    })
  }

  #finish(): void {
    if (this.isOver) return
    this.isOver = true
    this.#end?.close()
  }
}
