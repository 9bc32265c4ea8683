/** Serves one HTTP/2 connection of a world, and does with each request what the plan of its exchange says. */
import type { Arrival, Exchange } from './exchange.ts'
import { HeldBytes } from './held-bytes.ts'
import { type Field, Message } from './http1-reader.ts'
import type { Server, UpstreamOwner } from './http1-upstream.ts'
import { Http2Peer, type PeerOwner } from './http2-peer.ts'
import type { End } from './network.ts'

/** Error codes INTERNAL_ERROR and CANCEL. */
const resetCodes = [0x2, 0x8]

interface Served {
  readonly exchange: Exchange
  readonly arrival: Arrival
}

/** One connection of a server. */
export class Http2Service {
  readonly #upstream: Server
  readonly #owner: UpstreamOwner
  readonly #peer: Http2Peer
  readonly #served = new Map<number, Served>()
  readonly #arrivals: Arrival[] = []
  #last = 0
  /** Streams after this one are not processed, as GOAWAY has said. */
  #limit = Number.POSITIVE_INFINITY

  constructor(upstream: Server, end: End, owner: UpstreamOwner) {
    this.#upstream = upstream
    this.#owner = owner
    const { world, random } = owner
    const peerOwner: PeerOwner = {
      world,
      random,
      onHead: (stream, fields, isLast) => this.#onHead(stream, fields, isLast),
      onData: (stream, bytes, isLast) => this.#onData(stream, bytes, isLast),
      onReset: (stream) => void this.#served.delete(stream),
      onSentData: (stream, bytes) => this.#served.get(stream)?.arrival.held.read(bytes),
      onGoAway: () => {},
      onClose: () => this.#leave(),
      fail: (text) => owner.fail(`${upstream.name}: ${text}`),
    }
    const settings = {
      window: random.pick([65_535, 65_535, 1_000_000]),
      windowPauseMs: random.chance(0.8) ? 0 : 50,
    }
    this.#peer = new Http2Peer('server', end, settings, peerOwner)
  }

  #onHead(stream: number, fields: readonly Field[], isLast: boolean): void {
    const before = this.#served.get(stream)
    if (before !== undefined) {
      before.arrival.message.trailers = fields
      this.#onWhole(stream, before)
      return
    }
    // Trailers of a stream that was reset, and streams after a GOAWAY.
    if (stream <= this.#last || stream > this.#limit) return
    const textOf = (name: string) => fields.find(([other]) => other === name)?.[1] ?? ''
    const message = new Message(`${textOf(':method')} ${textOf(':path')} HTTP/2`, fields)
    const exchange = this.#owner.exchangeOf(message)
    if (exchange === undefined) {
      this.#owner.fail(`${this.#upstream.name} gets a request of no exchange: ${message.startLine}`)
      return
    }
    this.#last = stream
    const plan = exchange.planOf(exchange.arrivals.length)
    const { name } = this.#upstream
    const arrival = {
      upstream: name,
      message,
      plan,
      at: this.#owner.world.now,
      isOnKeptConnection: this.#arrivals.length > 0,
      respondedAt: Number.POSITIVE_INFINITY,
      hasResponded: false,
      isReset: false,
      held: new HeldBytes(),
    }
    exchange.arrivals.push(arrival)
    this.#owner.onArrival(exchange, arrival)
    this.#arrivals.push(arrival)
    const served = { exchange, arrival }
    this.#served.set(stream, served)
    if (plan.fault === 'reset before the head') {
      this.#later(plan.delayMs, stream, () => this.#reset(stream))
    } else if (plan.fault === 'end before the head') {
      this.#later(plan.delayMs, stream, () => this.#endSession(served))
    } else if (plan.fault !== 'silence' && plan.isEarly) this.#respond(stream, served)
    if (isLast) this.#onWhole(stream, served)
  }

  #onData(stream: number, bytes: Buffer, isLast: boolean): void {
    const served = this.#served.get(stream)
    if (served === undefined) return
    served.arrival.message.add(bytes)
    if (isLast) this.#onWhole(stream, served)
  }

  #onWhole(stream: number, { exchange, arrival }: Served): void {
    arrival.message.isComplete = true
    this.#owner.onRequest(exchange, arrival)
    const { fault, isEarly } = arrival.plan
    if (fault.endsWith('before the head') || fault === 'silence' || isEarly) return
    this.#respond(stream, { exchange, arrival })
  }

  #respond(stream: number, served: Served): void {
    const { plan } = served.arrival
    const { exchange } = served
    const hasBody = exchange.request.method !== 'HEAD' && plan.framing !== 'none'
    this.#later(plan.delayMs, stream, () => {
      served.arrival.respondedAt = this.#owner.world.now
      for (let at = 0; at < plan.informational; at++) {
        const hint: Field = ['link', `<${exchange.tag}>`]
        this.#peer.sendHead(stream, [[':status', '103'], hint], false)
      }
      const fields: Field[] = [
        [':status', String(plan.status)],
        ...plan.fields.map(([name, value]): Field => [name.toLowerCase(), value]),
      ]
      if (plan.framing === 'length') fields.push(['content-length', String(plan.body.length)])
      this.#peer.sendHead(stream, fields, !hasBody)
      if (hasBody) this.#sendBody(stream, served, plan.body)
      else this.#finish(stream, served)
    })
  }

  #sendBody(stream: number, served: Served, bytes: Buffer): void {
    const { random } = this.#owner
    const { plan } = served.arrival
    const trailers = plan.trailers.map(([name, value]): Field => [name.toLowerCase(), value])
    const isCut = plan.fault.endsWith('in the body') && plan.body.length > 1
    const size =
      plan.pauseMs === 0 ? bytes.length : Math.min(bytes.length, 1 + random.below(bytes.length + 1))
    const part = isCut ? bytes.subarray(0, random.below(bytes.length)) : bytes.subarray(0, size)
    const rest = bytes.subarray(size)
    const isLast = !isCut && rest.length === 0
    this.#peer.sendData(stream, part, isLast && trailers.length === 0, () => {
      if (!this.#served.has(stream)) return
      if (isCut) {
        if (plan.fault === 'reset in the body') this.#reset(stream)
        else this.#endSession(served)
      } else if (!isLast) {
        this.#later(random.between(0, plan.pauseMs), stream, () =>
          this.#sendBody(stream, served, rest),
        )
      } else {
        if (trailers.length > 0) this.#peer.sendHead(stream, trailers, true)
        this.#finish(stream, served)
      }
    })
  }

  #finish(stream: number, { arrival }: Served): void {
    arrival.hasResponded = true
    if (arrival.message.isComplete) this.#served.delete(stream)
    if (arrival.plan.fault !== 'end after the response') return
    this.#limit = this.#last
    this.#peer.goAway(this.#last)
  }

  #reset(stream: number): void {
    this.#served.delete(stream)
    this.#peer.reset(stream, this.#owner.random.pick(resetCodes))
  }

  /** Ends the connection, and with it all its other streams. */
  #endSession({ exchange }: Served): void {
    this.#owner.world.note(`a connection ends during ${exchange.tag}`)
    // Responses that were sent may not have left.
    for (const arrival of this.#arrivals) arrival.isReset = true
    this.#peer.close('close')
    this.#leave()
  }

  #leave(): void {
    this.#served.clear()
    this.#upstream.open--
  }

  #later(delayMs: number, stream: number, work: () => void): void {
    this.#owner.world.schedule(this.#upstream.machine, delayMs, () => {
      if (!this.#peer.isOver && this.#served.has(stream)) work()
    })
  }
}
