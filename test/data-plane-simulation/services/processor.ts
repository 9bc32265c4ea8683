/** The external processors of a world (`extProc`): one call for each exchange. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  type HttpBody,
  type HttpHeaders,
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from '../../../proto/gen/called/ext_proc_pb.ts'
import type { Exchange } from '../exchange.ts'
import { type CallHandler, type GrpcCall, randomResetCode } from './grpc-service.ts'
import type { ServiceOwner } from './policy-services.ts'
import { bodyModes, changed, type Direction, type Part, type Processing } from './processing.ts'

type Response = NonNullable<MessageInitShape<typeof ProcessingResponseSchema>['response']>

/** Set by processors on the heads that they let pass. */
export const processedField = 'x-processed'
const continueAndReplace = 1
export const replacementOf = (tag: string, direction: Direction) => `${tag} another ${direction}`

export class ProcessorCall implements CallHandler {
  readonly #call: GrpcCall
  readonly #owner: ServiceOwner
  #exchange: Exchange | undefined
  /** Answers that are not sent yet, in order, and when the last of them is. */
  readonly #answers: (() => void)[] = []
  #lastAt = 0
  /** Whether a fault has happened, after which nothing is answered. */
  #isSilent = false
  /** Work that waits for the end of the body, and pieces of bodies that are returned then. */
  readonly #heldHeaders = new Set<Direction>()
  readonly #collected = { request: [] as Buffer[], response: [] as Buffer[] }

  constructor(call: GrpcCall, owner: ServiceOwner) {
    this.#call = call
    this.#owner = owner
  }

  onMessage(bytes: Buffer): void {
    const { request } = fromBinary(ProcessingRequestSchema, bytes)
    if (request.case === undefined) {
      this.#owner.fail('framing', 'a processor gets an empty message')
      return
    }
    if (request.case === 'requestHeaders') this.#begin(request.value)
    const exchange = this.#exchange
    const processing = exchange?.processing
    if (exchange === undefined || processing === undefined) {
      this.#owner.fail('framing', `a processor gets ${request.case} of no exchange`)
      return
    }
    this.#owner.world.note(`the processor gets ${request.case} of ${exchange.tag}`)
    this.#owner.seen(exchange, 'the processor', bytes)
    switch (request.case) {
      case 'requestHeaders':
      case 'responseHeaders':
        this.#onHeaders(exchange, processing, request.case, request.value)
        break
      case 'requestBody':
      case 'responseBody':
        this.#onBody(exchange, processing, request.case, request.value)
        break
      default:
        this.#onTrailers(exchange, processing, request.case)
    }
  }

  #begin({ headers }: HttpHeaders): void {
    const path = headers?.headers.find(({ key }) => key === ':path')?.rawValue ?? []
    const exchange = this.#owner.exchangeOf(Buffer.from(path).toString('latin1'))
    if (this.#exchange !== undefined) this.#owner.fail('framing', 'two requests in one call')
    this.#exchange = exchange
    const problem = exchange?.processing?.begin(this.#call.isSlow)
    if (exchange !== undefined && problem !== undefined) this.#violate(exchange, problem)
  }

  #violate(exchange: Exchange, text: string): void {
    this.#owner.fail('framing', `${exchange.tag}: the processor gets ${text}`)
  }

  #onHeaders(exchange: Exchange, processing: Processing, part: Part, value: HttpHeaders): void {
    const direction = directionOf(part)
    const plan = processing[direction]
    const { wants } = processing
    if (direction === 'response' && !wants.headers) this.#violate(exchange, `${part} unasked`)
    if (value.endOfStream) processing.answered.add(`${direction}Body`)
    const comesWithBody = direction === 'request' || wants.body === bodyModes.fullDuplex
    const isHeld = plan.readsBodyFirst && !value.endOfStream && comesWithBody
    if (isHeld && !this.#breaks(processing, part, false)) {
      this.#heldHeaders.add(direction)
      return
    }
    this.#answerHeaders(exchange, processing, direction)
  }

  #answerHeaders({ tag }: Exchange, processing: Processing, direction: Direction): void {
    const part: Part = `${direction}Headers`
    const plan = processing[direction]
    const header = { header: { key: processedField, rawValue: Buffer.from(tag) } }
    const mutation = { case: 'body', value: Buffer.from(replacementOf(tag, direction)) } as const
    const replaced = { status: continueAndReplace, bodyMutation: { mutation } }
    const response = {
      headerMutation: { setHeaders: [header] },
      ...(plan.replaces && replaced),
    }
    this.#answer(processing, part, { case: part, value: { response } } as Response, () => {
      processing.answered.add(part)
      if (!plan.replaces) return
      processing.returned[direction].push(mutation.value)
      processing.answered.add(`${direction}Body`)
    })
  }

  #onBody(exchange: Exchange, processing: Processing, part: Part, { body, endOfStream }: HttpBody) {
    const direction = directionOf(part)
    const { wants } = processing
    const isUnasked = direction === 'response' && wants.body === bodyModes.none
    if (isUnasked) this.#violate(exchange, `${part} unasked`)
    processing.received[direction].push(Buffer.from(body))
    const plan = processing[direction]
    if (plan.replaces && this.#hasAnswered(processing, direction)) return
    if (plan.body === 'collected' || this.#heldHeaders.has(direction)) {
      this.#collected[direction].push(Buffer.from(body))
      if (this.#breaks(processing, part, false))
        this.#answerPiece(processing, direction, body, endOfStream)
      else if (endOfStream) this.#returnCollected(exchange, processing, direction, true)
    } else this.#answerPiece(processing, direction, body, endOfStream)
  }

  #hasAnswered(processing: Processing, direction: Direction): boolean {
    return (
      !this.#heldHeaders.has(direction) && (direction === 'request' || processing.wants.headers)
    )
  }

  /** Answers the headers that waited for the body, and returns the body in pieces. */
  #returnCollected(
    exchange: Exchange,
    processing: Processing,
    direction: Direction,
    isEnd: boolean,
  ): void {
    if (this.#heldHeaders.delete(direction)) this.#answerHeaders(exchange, processing, direction)
    const plan = processing[direction]
    if (plan.replaces && this.#hasAnswered(processing, direction)) return
    const pieces = this.#collected[direction].splice(0)
    if (plan.body === 'by piece') {
      for (const [at, piece] of pieces.entries()) {
        this.#answerPiece(processing, direction, piece, isEnd && at === pieces.length - 1)
      }
      return
    }
    const whole = Buffer.concat(pieces)
    const cut = this.#owner.random.below(whole.length + 1)
    this.#answerPiece(processing, direction, whole.subarray(0, cut), false)
    this.#answerPiece(processing, direction, whole.subarray(cut), isEnd)
  }

  #answerPiece(
    processing: Processing,
    direction: Direction,
    body: Uint8Array,
    endOfStream: boolean,
  ): void {
    const part: Part = `${direction}Body`
    const plan = processing[direction]
    const bytes = plan.changes ? changed(body) : Buffer.from(body)
    const streamed = { case: 'streamedResponse', value: { body: bytes, endOfStream } } as const
    const kept = plan.changes ? ({ case: 'body', value: bytes } as const) : undefined
    const mutation = plan.body === 'by piece' ? kept : streamed
    const value = mutation === undefined ? {} : { response: { bodyMutation: { mutation } } }
    this.#answer(processing, part, { case: part, value } as Response, () => {
      processing.returned[direction].push(bytes)
      if (endOfStream) processing.answered.add(part)
    })
  }

  #onTrailers(exchange: Exchange, processing: Processing, part: Part): void {
    const direction = directionOf(part)
    if (direction === 'response' && !processing.wants.trailers) {
      const { body } = processing.wants
      // In full duplex mode, they are the end of the body.
      if (body !== bodyModes.fullDuplex) this.#violate(exchange, `${part} unasked`)
    }
    const plan = processing[direction]
    if (plan.replaces && this.#hasAnswered(processing, direction)) return
    const isHeld = plan.body === 'collected' || this.#heldHeaders.has(direction)
    if (isHeld) this.#returnCollected(exchange, processing, direction, false)
    if (plan.replaces && this.#hasAnswered(processing, direction)) return
    this.#answer(processing, part, { case: part, value: {} } as Response, () => {
      processing.answered.add(part)
    })
  }

  #breaks({ fault }: Processing, part: Part, isAfter: boolean): boolean {
    return fault?.part === part && fault.isAfter === isAfter
  }

  /** Sends an answer after all others, or does what the plan does in its place. */
  #answer(processing: Processing, part: Part, response: Response, onSend: () => void): void {
    if (this.#isSilent) return
    const { world, machine, random } = this.#owner
    const delayMs = processing.delayMs === 0 ? 0 : random.between(0, processing.delayMs)
    this.#lastAt = Math.max(this.#lastAt, world.now + delayMs)
    const isInstead = this.#breaks(processing, part, false)
    const isAfter = this.#breaks(processing, part, true)
    this.#isSilent = isInstead || isAfter
    this.#answers.push(() => {
      if (!isInstead) {
        onSend()
        this.#send(response)
      }
      if (isInstead) this.#break(processing, part)
      else if (isAfter) this.#breakLater(processing, part)
    })
    world.schedule(machine, this.#lastAt - world.now, () => {
      const answer = this.#answers.shift()
      if (!this.#call.isOver) answer?.()
    })
  }

  #send(response: Response, modeOverride = this.#modesFor(response)): void {
    const message = { response, ...(modeOverride && { modeOverride }) }
    this.#call.send(toBinary(ProcessingResponseSchema, create(ProcessingResponseSchema, message)))
  }

  #modesFor(response: Response) {
    const modes = this.#exchange?.processing?.modes
    if (modes === undefined || response.case !== 'requestHeaders') return undefined
    const mode = (isWanted: boolean) => (isWanted ? 1 : 2)
    return {
      responseHeaderMode: mode(modes.headers),
      responseBodyMode: modes.body,
      responseTrailerMode: mode(modes.trailers),
    }
  }

  #breakLater(processing: Processing, part: Part): void {
    const { world, machine } = this.#owner
    const { lagMs = 0 } = processing.fault ?? {}
    if (lagMs === 0) this.#break(processing, part)
    else {
      world.schedule(machine, lagMs, () => {
        if (!this.#call.isOver) this.#break(processing, part)
      })
    }
  }

  #break(processing: Processing, part: Part): void {
    const { random, world } = this.#owner
    const call = this.#call
    const kind = processing.fault?.kind
    const other = part === 'requestHeaders' ? 'responseHeaders' : 'requestHeaders'
    world.note(`the processor breaks: ${kind} at ${part} of ${this.#exchange?.tag}`)
    if (processing.isClosed) return
    const isBound = processing.isBoundToResponse && !processing.hasResponse
    const isOrderly = kind === 'end' && processing.hasRequest && !isBound
    const ending = kind === 'immediate' ? 'refused' : isOrderly ? 'over' : 'failed'
    processing.end(ending, world.now)
    if (kind === 'end') call.finish(0)
    else if (kind === 'status') call.finish(random.pick([1, 13, 14]))
    else if (kind === 'reset') call.reset(randomResetCode(random))
    else if (kind === 'break') call.breakConnection()
    else if (kind === 'immediate') this.#refuse(processing)
    else if (kind === 'wrong part' && part !== 'requestBody') {
      this.#send({ case: other, value: {} } as Response)
    } else if (kind === 'wrong part') {
      // Another part could be one that waits for an answer, but no response can have this status.
      this.#send({ case: 'immediateResponse', value: { status: { code: 101 } } })
    } else if (kind === 'unknown status') {
      this.#send({ case: part, value: { response: { status: 2 } } } as Response)
    } else if (kind === 'garbage') call.send(Buffer.from([0xff, 0xff, 0xff]))
    else if (kind === 'empty') call.send(Buffer.alloc(0))
  }

  #refuse({ status }: Processing): void {
    const tag = this.#exchange?.tag ?? ''
    const setHeaders = [{ header: { key: 'x-refused', rawValue: Buffer.from(tag) } }]
    const body = Buffer.from(`${tag} is refused`)
    const value = { status: { code: status }, headers: { setHeaders }, body }
    this.#send({ case: 'immediateResponse', value })
  }

  onEnd(): void {
    const processing = this.#exchange?.processing
    if (processing === undefined) return
    processing.isClosed = true
    this.#owner.world.schedule(this.#owner.machine, processing.lingerMs, () => this.#call.finish(0))
  }

  onLost(isReset: boolean): void {
    const processing = this.#exchange?.processing
    if (processing === undefined) return
    const { world } = this.#owner
    world.note(`the call about ${this.#exchange?.tag} is ${isReset ? 'reset' : 'lost'}`)
    if (isReset && !this.#call.isOver) processing.isReset = true
    if (!isReset && processing.ending === 'refused') processing.isRefusalLost = true
    const hasAll = processing.hasRequest && processing.hasResponse
    if (!processing.isClosed) processing.end(hasAll ? 'lost' : 'failed', world.now)
  }
}

const directionOf = (part: Part): Direction => (part.startsWith('request') ? 'request' : 'response')
