/**
 * Finds an error that a provider sends as the first event of a stream. Until the first event has arrived, the
 * client gets nothing, so that another provider can still respond.
 */
import type { EventDecoder, ProviderError, StreamEvent } from '../../../../engines/messages/chat.ts'
import { readException } from '../../../../engines/messages/formats/converse/stream.ts'
import {
  isObject,
  type JsonObject,
  objectAt,
  parseJson,
} from '../../../../engines/messages/json/json.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { errorInPlace, isPlainText } from '../../../../engines/messages/response/conversion.ts'
import {
  decoderOf,
  openingOf,
  providerFraming,
} from '../../../../engines/messages/response/pipeline.ts'
import { errorInResponse } from '../../../../engines/messages/response/provider-error.ts'
import type { BodyWatcher } from '../../../../ground/exchange/exchange.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'

/** Milliseconds after which comments and pings are passed on, because clients may need them to wait longer. */
const maxSilenceMs = 5_000

/** Maximum size of the first event in bytes. Larger events are not errors. */
export const maxFirstEvent = 64 * 1024

/** An error in place of a response. */
interface StreamFailure {
  readonly error: ProviderError
  /** The event as parsed JSON; undefined if it is not JSON. */
  readonly parsed: JsonObject | undefined
}

export class FirstEvent implements BodyWatcher {
  readonly #request: OutgoingRequest
  readonly #decoder: EventDecoder
  readonly #startedAt = now()
  #event: StreamEvent | undefined
  readonly #maxSilenceMs: number
  #hasFailed = false

  /** `maxWaitMs` is the time after which another provider is tried; undefined if there is no such limit. */
  constructor(request: OutgoingRequest, maxWaitMs?: number) {
    this.#request = request
    this.#maxSilenceMs = Math.max(maxSilenceMs, maxWaitMs ?? 0)
    this.#decoder = decoderOf({ request, eventLimit: maxFirstEvent })
  }

  watch(bytes: Buffer, start: number, end: number): boolean {
    try {
      this.#decoder.push(bytes.subarray(start, end), (event) => {
        if (event.event !== 'ping') this.#event ??= event
      })
    } catch {
      // The stream itself reports what cannot be read.
      this.#hasFailed = true
    }
    return (
      this.#hasFailed || this.#event !== undefined || now() - this.#startedAt > this.#maxSilenceMs
    )
  }

  /** Returns the first event; undefined if there is none, or if it is not JSON. */
  readonly parsed = (): unknown => this.#event && parseJson(this.#event.data)

  /** Returns the error; undefined if the response begins. `whole` is all of the response if it is complete. */
  failure(whole: Uint8Array | undefined, isProtected: boolean): StreamFailure | undefined {
    if (this.#event !== undefined) return failureOf(this.#request, this.#event, isProtected)
    if (whole === undefined || this.#hasFailed) return undefined
    const text = openingOf(this.#request, whole)
    const parsed = parseJson(text)
    const error = errorInPlace({ request: this.#request, isProtected }, text)
    return { error, parsed: isObject(parsed) ? parsed : undefined }
  }
}

/** Returns the error that an event reports; undefined for other events. */
function failureOf(
  request: OutgoingRequest,
  event: StreamEvent,
  isProtected: boolean,
): StreamFailure | undefined {
  const parsed = parseJson(event.data)
  const exception = readException(event)
  if (exception !== undefined) return { error: exception, parsed: objectOf(parsed) }
  if (providerFraming(request) === 'event-stream') return undefined
  if (event.data !== '[DONE]' && isPlainText(event.data)) {
    return { error: errorInPlace({ request, isProtected }, event.data), parsed: undefined }
  }
  const body = reported(parsed)
  if (body === undefined) return undefined
  const error = errorInResponse(request, JSON.stringify(body), body, isProtected)
  return error && { error, parsed: body }
}

const objectOf = (value: unknown): JsonObject | undefined => (isObject(value) ? value : undefined)

/** Returns the object that has the error of an event, without a response. */
function reported(parsed: unknown): JsonObject | undefined {
  const body = Array.isArray(parsed) && parsed.length === 1 ? objectOf(parsed[0]) : objectOf(parsed)
  if (body === undefined) return undefined
  const inner = body.error ?? objectAt(body, 'response')?.error
  return inner == null ? body : { type: 'error', error: inner }
}
