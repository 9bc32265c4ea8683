/**
 * Sends a streamed response to guard services in windows. The client gets the text that has passed while later text
 * waits. The response begins after the first verdict, so that an early refusal has its own status. If all guards are
 * audits, the stream passes as it arrives, and only its end waits for them.
 */
import type { StreamEvent } from '../../../../engines/messages/chat.ts'
import type { ChatFormat } from '../../../../engines/messages/format.ts'
import { type EventEncoder, eventEncoder } from '../../../../engines/messages/framing/encoder.ts'
import { SseDecoder } from '../../../../engines/messages/framing/sse.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import type { HeldStream } from '../../../../engines/messages/mask/held-stream.ts'
import { StreamWindows } from '../../../../engines/messages/mask/stream-windows.ts'
import {
  type ConversionOptions,
  errorEvents,
} from '../../../../engines/messages/response/conversion.ts'
import { clientText } from '../../../../engines/messages/response/provider-error.ts'
import type { ModelResponseStream } from '../../../../engines/messages/response/stream.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { Body, BodyTransform, RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import type { ReturnStream, SideStream } from '../../../../ground/exchange/side-stream.ts'
import { isAudit, type PlacedGuard } from '../policy/bind-guard.ts'
import { WindowChecks } from './guard-checks.ts'
import type { ModelCall } from './model-call.ts'
import { judge } from './response-guards.ts'

/** Number of bytes that may arrive during a check before the provider must wait. */
const maxWaitingBytes = 256 * 1024

interface WindowOptions {
  readonly guards: readonly PlacedGuard[]
  readonly conversion: ConversionOptions
  /** Turns the bytes of the provider into server-sent events of the client's format. */
  readonly source: ModelResponseStream
  readonly onEvent: ((event: StreamEvent) => void) | undefined
}

/**
 * Relays a stream in windows. Resolves to the response to send instead if a guard refuses the first window, and to
 * undefined once the stream may be sent.
 */
export function relayInWindows(
  call: ModelCall,
  body: Body,
  options: WindowOptions,
): Promise<RespondVerdict | undefined> {
  const windows = new GuardWindows(call, options)
  call.windows = windows.checks
  return windows.start(body)
}

class GuardWindows implements SideStream {
  readonly checks: WindowChecks
  readonly #call: ModelCall
  readonly #options: WindowOptions
  readonly #format: ChatFormat
  readonly #decoder: SseDecoder
  readonly #windows: StreamWindows
  readonly #encoder: EventEncoder
  /** Whether the guards only report. */
  readonly #isAudit: boolean
  /** The end of an audited stream, which waits for the result; undefined until the model has ended the response. */
  #last: Uint8Array[] | undefined
  /** Whether audits cannot read the rest of the stream. */
  #isUnread = false
  readonly #first = Promise.withResolvers<RespondVerdict | undefined>()
  #returned: ReturnStream | undefined
  /** Whether a part of the stream may have been sent. */
  #hasBegun = false
  #isChecking = false
  #waitingBytes = 0
  /** Whether the client must read before more is written. */
  #isFull = false
  #hasEnded = false
  #isOver = false

  constructor(call: ModelCall, options: WindowOptions) {
    const { format, request, eventLimit } = options.conversion
    this.#call = call
    this.#options = options
    this.#format = format
    this.checks = new WindowChecks(options.guards)
    this.#isAudit = options.guards.every(isAudit)
    this.#decoder = new SseDecoder(eventLimit)
    this.#windows = new StreamWindows(format, call.context.exchange.bufferLimit)
    this.#encoder = eventEncoder(request.framing ?? 'sse')
  }

  start(body: Body): Promise<RespondVerdict | undefined> {
    body.through(this.#options.source)
    this.#returned = body.divert?.(this)
    if (this.#returned === undefined) throw new Error('the response cannot be guarded in windows')
    this.#call.context.exchange.responseBody?.through(this.#passing)
    if (this.#isAudit) this.#begin()
    this.#advance()
    return this.#first.promise
  }

  push(bytes: Uint8Array): boolean {
    this.#read(bytes)
    this.#advance()
    return !this.#isFull && this.#waitingBytes <= maxWaitingBytes
  }

  end(bytes: Uint8Array): void {
    this.#read(bytes)
    this.#hasEnded = true
    this.#advance()
  }

  drained(): void {
    this.#isFull = false
    this.#resume()
  }

  /** Passes on what has been released, and ends the response with an error if the provider disconnects. */
  readonly #passing: BodyTransform = {
    push: (chunk, emit) => emit(chunk),
    end: () => {},
    fail: (emit) => {
      if (this.#isOver) return
      this.#isOver = true
      this.#options.source.fail(() => {})
      for (const piece of this.#last ?? []) emit(piece)
      emit(this.#error({ status: 502, message: 'the response of the provider was cut off' }))
    },
  }

  #resume(): void {
    if (!this.#isFull && this.#waitingBytes <= maxWaitingBytes) this.#returned?.resume()
  }

  #read(bytes: Uint8Array): void {
    if (this.#isOver || bytes.length === 0) return
    if (this.#isChecking) this.#waitingBytes += bytes.length
    const events: StreamEvent[] = []
    try {
      this.#decoder.push(bytes, (event) => {
        events.push(event)
        this.#add(event)
      })
    } catch (error) {
      this.#fail(error)
    }
    if (this.#isAudit) this.#pass(bytes, events)
  }

  /** @throws LlmError 502 if guards cannot read the event */
  #add(event: StreamEvent): void {
    if (this.#isUnread) return
    try {
      const isLast = this.#windows.add(event)
      if (isLast && this.#isAudit) this.#last ??= []
    } catch (error) {
      if (!this.#isAudit) throw error
      this.#noteUnread()
    }
  }

  /** Passes on a piece of an audited stream, except for the end. */
  #pass(bytes: Uint8Array, events: readonly StreamEvent[]): void {
    if (this.#isOver) return
    const isSse = (this.#options.conversion.request.framing ?? 'sse') === 'sse'
    const piece = isSse ? bytes : this.#encoder.encode(events)
    this.#report(events)
    if (this.#last === undefined) this.#send(piece)
    else this.#last.push(piece)
  }

  #noteUnread(): void {
    this.#isUnread = true
    const found = { detail: 'the response cannot be read' }
    for (const placed of this.#options.guards) {
      this.checks.add(this.#call, placed, 'FailOpen', found)
    }
  }

  /** Checks the window if it is due, unless one is being checked. */
  #advance(): void {
    if (this.#isOver || this.#isChecking || this.#returned === undefined) return
    if (this.#isUnread) {
      if (this.#hasEnded) this.#finish(this.#encoder.end())
      return
    }
    const { isDue, isTextless } = this.#windows
    if (!isDue && !isTextless && !this.#hasEnded) return
    this.#isChecking = true
    this.#check(this.#hasEnded).catch((error: unknown) => this.#fail(error))
  }

  async #check(isLast: boolean): Promise<void> {
    const held = this.#windows.open()
    const hasTexts = held.texts().some(({ content }) => content !== '')
    const refusal = hasTexts ? await this.#judge(held) : undefined
    if (this.#isOver) return
    if (this.#call.context.over) {
      this.#isOver = true
      return
    }
    if (refusal !== undefined) {
      this.#refuse(refusal)
      return
    }
    this.#release(this.#windows.close(held, isLast || !hasTexts))
    this.#isChecking = false
    this.#waitingBytes = 0
    if (isLast) this.#finish(this.#encoder.end())
    else {
      this.#advance()
      this.#resume()
    }
  }

  #judge(held: HeldStream): Promise<RespondVerdict | undefined> {
    return judge(this.#call, held, this.#options.guards, this.checks.add)
  }

  /** Sends events that the guards have passed. The events of audited streams were sent already. */
  #release(events: readonly StreamEvent[]): void {
    if (events.length === 0 || this.#isAudit) return
    this.#report(events)
    this.#send(this.#encoder.encode(events))
    this.#begin()
  }

  #report(events: readonly StreamEvent[]): void {
    const { onEvent } = this.#options
    if (onEvent !== undefined) for (const event of events) onEvent(event)
  }

  #send(bytes: Uint8Array): void {
    if (bytes.length > 0 && this.#returned?.write(bytes) === false) this.#isFull = true
  }

  #begin(): void {
    this.#hasBegun = true
    this.#first.resolve(undefined)
  }

  #finish(last: Uint8Array): void {
    this.#isOver = true
    for (const piece of this.#last ?? []) this.#send(piece)
    this.#send(last)
    this.#begin()
    this.#returned?.end()
  }

  #refuse(refusal: RespondVerdict): void {
    if (!this.#hasBegun) {
      this.#isOver = true
      this.#first.resolve(refusal)
      return
    }
    const { status, body, detail } = refusal
    this.#call.context.refusal = detail
    this.#abort({ status, message: String(body) })
  }

  /** Ends the response with the error of a guard or of a stream that guards cannot read. */
  #fail(error: unknown): void {
    if (this.#isOver) return
    if (!this.#hasBegun) {
      this.#isOver = true
      this.#first.reject(error)
    } else if (error instanceof LlmError) {
      const { status } = error
      this.#abort({ status, message: clientText(error, true) })
    } else if (error instanceof GatewayError) {
      this.#call.context.refusal = error.message
      this.#abort({ status: error.row.status, message: error.row.text })
    } else {
      this.#isOver = true
      this.#returned?.abort(new GatewayError('bug', undefined, error))
    }
  }

  #abort(error: { readonly status: number; readonly message: string }): void {
    this.#options.source.hasFailed = true
    this.#finish(this.#error(error))
  }

  #error(error: { readonly status: number; readonly message: string }): Uint8Array {
    const events = errorEvents({ ...this.#options.conversion, format: this.#format }, error)
    return Buffer.concat([this.#encoder.encode(events), this.#encoder.end()])
  }
}
