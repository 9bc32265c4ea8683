/** Serves one HTTP/1.1 connection of a world, and does with each request what the plan of its exchange says. */
import type { Random } from '../virtual-time/random.ts'
import type { Machine, World } from '../virtual-time/world.ts'
import { type Arrival, type Exchange, framedBody, framingField, linesOf } from './exchange.ts'
import { HeldBytes } from './held-bytes.ts'
import { type Message, MessageReader } from './http1-reader.ts'
import type { End, Network } from './network.ts'

export interface UpstreamOwner {
  readonly world: World
  readonly network: Network
  readonly random: Random
  /** Finds the exchange of a request. */
  exchangeOf(message: Message): Exchange | undefined
  /** Called when a request has arrived as a whole. */
  onRequest(exchange: Exchange, arrival: Arrival): void
  /** Called when a request has begun to arrive. */
  onArrival(exchange: Exchange, arrival: Arrival): void
  fail(text: string): void
}

/** The server that a connection belongs to. */
export interface Server {
  readonly name: string
  readonly machine: Machine
  /** Number of open connections. */
  open: number
}

/** A slow server reads quickly after so many pauses. */
const mostReadPauses = 40

/** One connection of a server. */
export class Http1Service {
  readonly #upstream: Server
  readonly #end: End
  readonly #owner: UpstreamOwner
  readonly #reader: MessageReader
  /** The request that is read or responded to; a connection of the gateway carries one at a time. */
  #arrival: Arrival | undefined
  #exchange: Exchange | undefined
  #isOver = false
  /** Number of requests that were read. */
  #served = 0
  #readPauses = 0

  constructor(upstream: Server, end: End, owner: UpstreamOwner) {
    this.#upstream = upstream
    this.#end = end
    this.#owner = owner
    this.#reader = new MessageReader(
      'request',
      {
        onHead: (message) => this.#begin(message),
        onComplete: (message) => this.#received(message),
      },
      () => '',
    )
    end.receiver = {
      onBytes: (bytes) => this.#receive(bytes),
      onEnd: () => this.#close(),
      onReset: () => this.#leave(),
    }
  }

  #receive(bytes: Buffer): void {
    if (this.#isOver) return
    try {
      this.#reader.push(bytes)
    } catch (error) {
      this.#owner.fail(`${this.#upstream.name} cannot read what the gateway sends: ${error}`)
    }
    const { pauseMs = 0 } = this.#arrival?.plan ?? {}
    if (pauseMs === 0 || this.#readPauses++ > mostReadPauses) return
    this.#end.pause()
    this.#later(this.#owner.random.between(0, pauseMs), () => this.#end.read())
  }

  #begin(message: Message): void {
    const exchange = this.#owner.exchangeOf(message)
    if (exchange === undefined) {
      this.#owner.fail(`${this.#upstream.name} gets a request of no exchange: ${message.startLine}`)
      return
    }
    if (this.#arrival !== undefined) {
      this.#owner.fail(`${this.#upstream.name} gets ${exchange.tag} before its response is over`)
    }
    const plan = exchange.planOf(exchange.arrivals.length)
    const arrival = {
      upstream: this.#upstream.name,
      message,
      plan,
      at: this.#owner.world.now,
      isOnKeptConnection: this.#served++ > 0,
      respondedAt: Number.POSITIVE_INFINITY,
      hasResponded: false,
      isReset: false,
      held: new HeldBytes(),
    }
    this.#end.onRead = (bytes) => arrival.held.read(bytes)
    exchange.arrivals.push(arrival)
    this.#owner.onArrival(exchange, arrival)
    this.#arrival = arrival
    this.#exchange = exchange
    if (plan.fault === 'reset before the head') this.#later(plan.delayMs, () => this.#reset())
    else if (plan.fault === 'end before the head') this.#later(plan.delayMs, () => this.#close())
    else if (plan.fault !== 'silence' && plan.isEarly) this.#respond(exchange, arrival)
    else if (message.fields.some(([name]) => name.toLowerCase() === 'expect')) {
      this.#end.write(Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'))
    }
  }

  #received(_message: Message): void {
    const [exchange, arrival] = [this.#exchange, this.#arrival]
    if (exchange === undefined || arrival === undefined) return
    this.#owner.onRequest(exchange, arrival)
    const { fault, isEarly } = arrival.plan
    if (fault.endsWith('before the head') || fault === 'silence') return
    if (!isEarly) this.#respond(exchange, arrival)
    else if (arrival.hasResponded) this.#next()
  }

  #respond(exchange: Exchange, arrival: Arrival): void {
    const { plan } = arrival
    const { random } = this.#owner
    const { status, framing, fields, body, trailers, fault } = plan
    const isHead = exchange.request.method === 'HEAD'
    const early = 'HTTP/1.1 103 Early Hints\r\n'
    const hints = `${early}Link: <${exchange.tag}>\r\n\r\n`.repeat(plan.informational)
    const lines = linesOf([...fields, ...framingField(framing, body)])
    const head = Buffer.from(`${hints}HTTP/1.1 ${status} Some Reason\r\n${lines}\r\n`)
    const framed = isHead ? Buffer.alloc(0) : framedBody(random, framing, body, trailers)
    const whole = Buffer.concat([head, framed])
    const isCut = fault.endsWith('in the body') && framed.length > 1
    const size = isCut ? head.length + random.below(framed.length - 1) : whole.length
    this.#later(plan.delayMs, () => {
      arrival.respondedAt = this.#owner.world.now
      this.#send(whole.subarray(0, size), arrival, () => {
        if (isCut) {
          if (fault === 'reset in the body') this.#reset()
          else this.#close()
          return
        }
        arrival.hasResponded = true
        const endsByClose = framing === 'close' && !isHead
        arrival.isReset = endsByClose && !arrival.message.isComplete
        if (endsByClose || fault === 'end after the response') this.#close()
        else if (arrival.message.isComplete) this.#next()
      })
    })
  }

  /** Sends bytes in pieces. */
  #send(bytes: Buffer, arrival: Arrival, onSent: () => void): void {
    const { random } = this.#owner
    const { pauseMs } = arrival.plan
    const size =
      pauseMs === 0 ? bytes.length : Math.min(bytes.length, 1 + random.below(bytes.length))
    const rest = bytes.subarray(size)
    const go = () => {
      if (this.#isOver) return
      if (rest.length === 0) onSent()
      else this.#later(random.between(0, pauseMs), () => this.#send(rest, arrival, onSent))
    }
    if (this.#end.write(bytes.subarray(0, size), go)) go()
  }

  /** The connection is free for another request. */
  #next(): void {
    this.#arrival = undefined
    this.#exchange = undefined
  }

  #later(delayMs: number, work: () => void): void {
    this.#owner.world.schedule(this.#upstream.machine, delayMs, () => {
      if (!this.#isOver) work()
    })
  }

  #close(): void {
    if (this.#isOver) return
    this.#end.close()
    this.#leave()
  }

  #reset(): void {
    this.#end.reset()
    this.#leave()
  }

  #leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    const during =
      this.#exchange === undefined ? 'while it is idle' : `during ${this.#exchange.tag}`
    this.#owner.world.note(`a connection ends ${during}`)
    this.#end.close()
    this.#upstream.open--
  }
}
