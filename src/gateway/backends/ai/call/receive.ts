/** Turns the response of a provider into the response for the client. */

import type { ResponseDetails } from '../../../../engines/messages/common/response-details.ts'
import { type ChatFormat, chatFormatOf, transcriptOf } from '../../../../engines/messages/format.ts'
import { eventEncoder, mediaTypes } from '../../../../engines/messages/framing/encoder.ts'
import {
  isObject,
  type JsonObject,
  parseJson,
  utf8Text,
} from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { otherResponse } from '../../../../engines/messages/mask/message-forms.ts'
import { lacksCounts } from '../../../../engines/messages/request/counts/index.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import type { ConversionOptions } from '../../../../engines/messages/response/conversion.ts'
import { WholeOutput } from '../../../../engines/messages/response/model-output.ts'
import { convertEvents } from '../../../../engines/messages/response/pipeline.ts'
import {
  errorInResponse,
  isOfProvider,
  loggedText,
  needObject,
  ProviderFailure,
  providerFailed,
} from '../../../../engines/messages/response/provider-error.ts'
import {
  detailsInBytes,
  readErrorResponse,
  readWholeResponse,
  statusError,
  withAskedModel,
} from '../../../../engines/messages/response/whole.ts'
import { andThen } from '../../../../ground/base/and-then.ts'
import { bufferOf } from '../../../../ground/base/buffers.ts'
import type { Body, BufferedBody, ResponseHead } from '../../../../ground/exchange/exchange.ts'
import type { Received } from '../../../proxy/request/backend-call.ts'
import { BatchResults } from './batch-results.ts'
import { decodeBody } from './content-coding.ts'
import { isFailoverStatus, reasonInEvent, reasonInResponse } from './failover.ts'
import { FirstEvent, maxFirstEvent } from './first-event.ts'
import type { ModelCall } from './model-call.ts'
import { describeModelCall } from './model-details.ts'
import { failureFor } from './next-provider.ts'
import { llmRefusal } from './own-responses.ts'
import { recorder } from './record-output.ts'
import { relayStream } from './relay-stream.ts'
import { auditWhole, hasAuditsOnly, judgeHeld } from './response-audits.ts'
import { actsOnResponse, guardError, guardResponse, holdsResponse } from './response-guards.ts'
import {
  contextOf,
  isCoded,
  isOther,
  isStream,
  needNoRedirect,
  replacedHeaders,
  responseLimitOf,
  withoutTexts,
} from './response-kinds.ts'
import { countedResponse } from './token-count.ts'
import { guardTranscript } from './transcripts.ts'

type Result = Received

/** A response of a provider that the gateway reads. */
interface ReceivedResponse {
  readonly call: ModelCall
  readonly request: OutgoingRequest
  readonly response: ResponseHead
  readonly body: Body
  /** The client's format; undefined if the response is not a conversation. */
  readonly format: ChatFormat | undefined
}

/** Returns the maximum size of a response that is read as a whole; undefined for other responses. */
export function wholeResponseLimit(call: ModelCall): number | undefined {
  call.firstEvent = undefined
  const { outgoing, context } = call
  const { response } = context.exchange
  if (outgoing === undefined || response === undefined) return undefined
  if (isOther(response, outgoing.format, actsOnResponse(call)) || isContent(call)) return undefined
  const isRelayed =
    isStream(response, chatFormatOf(outgoing.format)) &&
    !holdsResponse(call) &&
    !isCoded(response.headers.get('content-encoding'))
  return isRelayed ? undefined : responseLimitOf(context.exchange)
}

/**
 * Returns what must see the beginning of a stream before the client gets any of it; undefined if there is no
 * other provider to try, or if the response is not a stream that the gateway reads.
 */
export function beginningOfResponse(call: ModelCall): FirstEvent | undefined {
  const { outgoing, canRestore, stored } = call
  if (outgoing === undefined || !canRestore || stored?.seal !== undefined) return undefined
  if (chatFormatOf(outgoing.format) === undefined) return undefined
  call.firstEvent = new FirstEvent(outgoing, call.failover?.firstTokenMs)
  return call.firstEvent
}

/**
 * Returns the response to send instead; undefined if the provider's response can be relayed. `read` is the
 * body if `wholeResponseLimit` has returned a limit, or its beginning after `beginningOfResponse`.
 */
export function receiveResponse(
  call: ModelCall,
  read: BufferedBody | undefined,
): Result | Promise<Result> {
  const received = receivedResponse(call)
  if (received === undefined) return watchResults(call)
  const { firstEvent } = call
  if (firstEvent === undefined) {
    return read === undefined ? relay(received) : receiveWhole(received, read)
  }
  const whole = read?.complete === true ? read.bytes : undefined
  return receiveFailure(received, firstEvent, whole) ?? relay(received)
}

/** Adds up what the results of a batch have cost while they pass, if they pass whole. */
function watchResults(call: ModelCall): undefined {
  const { stored, context } = call
  const { response, responseBody } = context.exchange
  const isWhole = response?.status === 200 && !isCoded(response.headers.get('content-encoding'))
  if (stored?.results === undefined || !isWhole) return
  call.batch = new BatchResults(stored.results, call)
  responseBody?.through(call.batch)
}

/** Returns the refusal of a stream that begins with an error; undefined if its response begins. */
function receiveFailure(
  received: ReceivedResponse,
  first: FirstEvent,
  whole: Uint8Array | undefined,
): Result | Promise<Result> {
  const { call } = received
  const isGuarded = actsOnResponse(call)
  const failure = first.failure(whole, isGuarded)
  const reason = reasonInEvent(call.failover, failure?.error, first.parsed)
  const next = failureFor(call, reason)
  if (next !== undefined || failure === undefined) return next
  const { status } = failure.error
  if (reason === undefined && !isFailoverStatus(call.failover, status, received.response)) return
  return isGuarded && failure.parsed !== undefined
    ? awaitOrRefuse(received, replaceError(received, failure.parsed))
    : refuseResponse(received, new ProviderFailure(failure.error))
}

const relay = (received: ReceivedResponse): Result | Promise<Result> => {
  const relayed = relayStream(received, (format) => conversionOf(received, format))
  return relayed && awaitOrRefuse(received, relayed)
}

function receivedResponse(call: ModelCall): ReceivedResponse | undefined {
  const { response, responseBody: body } = call.context.exchange
  const { outgoing: request } = call
  if (isContent(call)) return undefined
  if (request === undefined || response === undefined || body === undefined) return undefined
  return { call, request, response, body, format: chatFormatOf(request.format) }
}

function conversionOf(received: ReceivedResponse, format: ChatFormat): ConversionOptions {
  const { call, request } = received
  return {
    request,
    format,
    eventLimit: responseLimitOf(call.context.exchange),
    context: contextOf(call),
    isProtected: actsOnResponse(call),
    onDetails: (details) => call.addDetails(details),
    onContent: (bytes) => call.noteContent(bytes),
  }
}

function receiveWhole(received: ReceivedResponse, read: BufferedBody): Result | Promise<Result> {
  try {
    if (!read.complete) throw new LlmError(502, 'the response of the provider is too large')
    const coding = received.response.headers.get('content-encoding')
    const limit = responseLimitOf(received.call.context.exchange)
    const decoded = decodeBody(read.bytes, coding, limit, 'provider')
    const replaced = andThen(decoded, replaceDecoded, received, read.bytes)
    return replaced instanceof Promise ? awaitOrRefuse(received, replaced) : replaced
  } catch (error) {
    return refuseResponse(received, error)
  }
}

async function awaitOrRefuse(
  received: ReceivedResponse,
  pending: Promise<Result>,
): Promise<Result> {
  try {
    return await pending
  } catch (error) {
    return refuseResponse(received, error)
  }
}

function refuseResponse({ call, request }: ReceivedResponse, error: unknown): Result {
  if (!(error instanceof LlmError)) throw error
  call.context.refusal = loggedText(error)
  const refusal = llmRefusal(request.format.name, error, actsOnResponse(call))
  const { status } = error
  const isFailure =
    isOfProvider(error) && isFailoverStatus(call.failover, status, call.context.exchange.response)
  return isFailure ? { kind: 'failed', status, response: refusal } : refusal
}

function replaceDecoded(
  bytes: Uint8Array,
  received: ReceivedResponse,
  sent: Uint8Array,
): Result | Promise<Result> {
  const { call, request, response, format } = received
  if (call.context.over) return undefined
  if (request.countLocally !== undefined && lacksCounts(response.status)) {
    return countedResponse(call, request.format, request.countLocally)
  }
  needNoRedirect(response.status)
  const reason = reasonInResponse(call.failover, request, response.status, bytes)
  const next = failureFor(call, reason)
  if (next !== undefined) return next
  const wasDecoded = bytes !== sent
  if (wasDecoded) response.headers.remove('content-encoding')
  const seal = call.stored?.seal
  if (typeof seal === 'function' && response.status < 300) {
    return put(received, seal(needObject(utf8Text(bytes))))
  }
  if (format !== undefined && isStream(response, format)) {
    return replaceStream(received, bytes, format)
  }
  const whole = bufferOf(bytes)
  const replaced = replaceWhole(received, whole, wasDecoded)
  return hasAuditsOnly(call) && format !== undefined && response.status < 300
    ? andThen(replaced, auditWhole, call, format, whole)
    : replaced
}

/** Whether the response is a file that passes as it comes. */
const isContent = ({ stored, context }: ModelCall): boolean =>
  stored?.seal === 'relay' && (context.exchange.response?.status ?? 0) < 300

/** Replaces a whole streamed response; guards check all of it before the client gets any. */
async function replaceStream(
  received: ReceivedResponse,
  bytes: Uint8Array,
  format: ChatFormat,
): Promise<Result> {
  const { call, request, response } = received
  if (call.canRestore) {
    const first = new FirstEvent(request)
    first.watch(bufferOf(bytes), 0, Math.min(bytes.length, maxFirstEvent))
    const failure = await receiveFailure(received, first, bytes)
    if (call.context.over || failure !== undefined) return failure
  }
  const conversion = { ...conversionOf(received, format), eventLimit: bytes.length }
  const converted = convertEvents(conversion, bytes)
  const held = await judgeHeld(call, format, converted)
  if (call.context.over) return undefined
  if (held !== undefined && 'kind' in held) return held
  const events = held?.release() ?? converted
  const record = recorder(call, format)
  if (record !== undefined) for (const event of events) record(event)
  const framing = request.framing ?? 'sse'
  const encoder = eventEncoder(framing)
  replaceBody(received, Buffer.concat([encoder.encode(events), encoder.end()]))
  describeModelCall(call)
  response.headers.set('content-type', mediaTypes[framing])
  return undefined
}

function replaceBody({ response, body }: ReceivedResponse, bytes: Uint8Array): undefined {
  body.replace(bytes)
  for (const name of replacedHeaders) response.headers.remove(name)
}

/** Replaces a response that is not streamed. @throws LlmError 502 if it cannot be read. */
function replaceWhole(
  received: ReceivedResponse,
  bytes: Buffer,
  wasDecoded: boolean,
): Result | Promise<Result> {
  const { call, request, format } = received
  const { status } = received.response
  if (actsOnResponse(call)) return replaceProtected(received, utf8Text(bytes))
  const found = status < 300 ? detailsInBytes(request, bytes) : undefined
  const relayed = wasDecoded ? bytes : undefined
  if (found !== undefined) {
    const named = withAskedModel(request, bytes)
    learnDetails(call, found)
    if (format !== undefined) call.output = new WholeOutput(bytes, format)
    return put(received, named ?? relayed)
  }
  const text = utf8Text(bytes)
  return status >= 300
    ? put(received, readErrorResponse(request, status, text) ?? relayed)
    : replaceParsed(received, text, relayed)
}

/** Replaces a response that guards protect. What they cannot read is refused. @throws LlmError 502 */
async function replaceProtected(received: ReceivedResponse, text: string): Promise<Result> {
  const { call, request, format, response } = received
  const { status } = response
  const transcript = transcriptOf(request.format)
  if (status < 300 && transcript !== undefined) {
    const guarded = await guardTranscript(call, response, transcript, text)
    if (call.context.over || guarded.refusal !== undefined) return guarded.refusal
    return guarded.body && replaceBody(received, guarded.body)
  }
  const parsed = parseJson(text)
  if (status >= 300 || errorInResponse(request, text, parsed) !== undefined) {
    return replaceError(received, parsed)
  }
  const isForeign = request.plan.kind === 'native' && isObject(parsed)
  if (isForeign && !request.format.hasResponse(parsed)) throw new LlmError(502, otherResponse)
  const converted = readResponse(received, text)
  if (format === undefined) return put(received, withoutTexts(request, converted.body))
  const { body, refusal } = await guardResponse(call, converted.body, format)
  if (call.context.over || refusal !== undefined) return refusal
  call.output = new WholeOutput(body, format)
  // The body is written again, because the client may find another value for a repeated key.
  return put(received, body)
}

/** Replaces an error of the provider by what guards leave of it. @throws ProviderFailure if its status is that of a response. */
async function replaceError(received: ReceivedResponse, error: unknown): Promise<Result> {
  const { call, request, response } = received
  const { status } = response
  if (!isObject(error) && !Array.isArray(error)) {
    return put(received, statusError(request, status))
  }
  const { value, refusal } = await guardError(call, error)
  if (call.context.over || refusal !== undefined) return refusal
  const text = JSON.stringify(value)
  if (status >= 300) {
    return put(received, readErrorResponse(request, status, text, true) ?? Buffer.from(text))
  }
  const found = errorInResponse(request, text, value, true)
  throw found === undefined ? new LlmError(502, providerFailed) : new ProviderFailure(found)
}

function readResponse(received: ReceivedResponse, text: string) {
  const { headers } = received.response
  const converted = readWholeResponse(
    received.request,
    text,
    (name) => headers.get(name),
    contextOf(received.call),
  )
  learnDetails(received.call, converted.details)
  return converted
}

/** `relayed` is set if the bytes of the provider cannot be relayed as they came. */
function replaceParsed(
  received: ReceivedResponse,
  text: string,
  relayed: Buffer | undefined,
): undefined {
  const { call, format } = received
  const converted = readResponse(received, text)
  if (format !== undefined) call.output = new WholeOutput(converted.body, format)
  return put(received, converted.isChanged ? converted.body : relayed)
}

function learnDetails(call: ModelCall, details: ResponseDetails): void {
  call.addDetails(details)
  describeModelCall(call)
}

/** Replaces the body by an object or bytes; undefined if it is relayed. */
function put(received: ReceivedResponse, body: JsonObject | Buffer | undefined): undefined {
  if (body === undefined) return
  const isBytes = Buffer.isBuffer(body)
  replaceBody(received, isBytes ? body : Buffer.from(JSON.stringify(body)))
  if (!isBytes) received.response.headers.set('content-type', 'application/json')
}
