/** Turns the answer of a provider into the answer for the client. */
import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import type {
  Body,
  BufferedBody,
  RespondVerdict,
  ResponseHead,
} from '../../../exchange/exchange.ts'
import type { AnswerContext, StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { HeldStream } from '../guards/held-stream.ts'
import { asBuffer, type JsonObject, utf8Text } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { detailsInBytes, readErrorAnswer, readWholeAnswer } from '../serve/answer.ts'
import type { ConversionOptions } from '../serve/conversion.ts'
import { StreamedOutput, WholeOutput } from '../serve/model-output.ts'
import { chatFormatOf, type OutgoingRequest } from '../serve/request.ts'
import { AnswerStream, convertEvents, eventBytes } from '../serve/stream.ts'
import { decodeBody } from './content-coding.ts'
import type { ModelCall } from './model-call.ts'
import { describeModelCall } from './model-details.ts'
import { llmRefusal } from './own-answers.ts'
import { newId } from './prepare.ts'
import { guardAnswer, guardHeld, holdsAnswer, streamGuardOf } from './response-guards.ts'

type Result = RespondVerdict | undefined

/** An answer of a provider that the gateway reads. */
interface ReceivedAnswer {
  readonly call: ModelCall
  readonly request: OutgoingRequest
  readonly response: ResponseHead
  readonly body: Body
  /** The client's format; undefined if the answer is not a conversation. */
  readonly format: ChatFormat | undefined
}

/** Maximum size of an answer that is read as a whole, unless the buffer limit is larger. */
const minAnswerLimit = 32 * 1024 * 1024

const answerLimitOf = ({ bufferLimit }: ServerExchange): number =>
  Math.max(bufferLimit, minAnswerLimit)

const streamTypes = /^(text\/event-stream|application\/vnd\.amazon\.eventstream)\s*(;|$)/i

/** Returns the maximum size of an answer that is read as a whole; undefined for other answers. */
export function wholeAnswerLimit(call: ModelCall): number | undefined {
  const answer = receivedAnswer(call)
  return answer === undefined || isRelayedStream(answer)
    ? undefined
    : answerLimitOf(call.context.exchange)
}

/**
 * Returns the response to send instead; undefined if the provider's response can be relayed. `read` is the
 * body if `wholeAnswerLimit` has returned a limit.
 */
export function receiveAnswer(
  call: ModelCall,
  read: BufferedBody | undefined,
): Result | Promise<Result> {
  const answer = receivedAnswer(call)
  if (answer === undefined) return undefined
  if (read !== undefined) return receiveWhole(answer, read)
  const { format, response, body } = answer
  if (format === undefined) return undefined
  response.headers.set('content-type', 'text/event-stream')
  const conversion = conversionOf(answer, format)
  const guard = streamGuardOf(call, format, conversion.eventLimit)
  const isGuarded = guard !== undefined
  const onEvent = recorder(call, format)
  const stream = new AnswerStream({ ...conversion, guard, isGuarded, onEvent })
  call.stream = stream
  body.through(stream)
  return undefined
}

function receivedAnswer(call: ModelCall): ReceivedAnswer | undefined {
  const { response, responseBody: body } = call.context.exchange
  const { outgoing: request } = call
  if (request === undefined || response === undefined || body === undefined) return undefined
  return { call, request, response, body, format: chatFormatOf(request.route) }
}

function isStream({ response, format }: ReceivedAnswer): boolean {
  if (response.status >= 300 || format === undefined) return false
  return streamTypes.test(response.headers.get('content-type') ?? '')
}

/** Returns true if the events of the answer are relayed as they come. */
function isRelayedStream(answer: ReceivedAnswer): boolean {
  if (!isStream(answer) || holdsAnswer(answer.call)) return false
  return !isCoded(answer.response.headers.get('content-encoding'))
}

const isCoded = (coding: string | undefined): boolean =>
  coding !== undefined && coding !== '' && coding.toLowerCase() !== 'identity'

const contextNow = (): AnswerContext => ({ created: Math.floor(Date.now() / 1_000), newId })

/** Returns a recorder of the model's output; undefined if no expression uses the output. */
function recorder(call: ModelCall, format: ChatFormat) {
  const { observers, exchange } = call.context
  if (!observers.parts.modelTexts) return undefined
  const output = new StreamedOutput(format, exchange.bufferLimit)
  call.output = output
  return (event: StreamEvent) => output.push(event)
}

function conversionOf({ call, request }: ReceivedAnswer, format: ChatFormat): ConversionOptions {
  return {
    request,
    format,
    clientFields: call.clientBody?.fields ?? {},
    eventLimit: answerLimitOf(call.context.exchange),
    context: contextNow(),
    onDetails: (details) => call.addDetails(details),
    onContent: (bytes) => call.noteContent(bytes),
  }
}

function receiveWhole(answer: ReceivedAnswer, read: BufferedBody): Result | Promise<Result> {
  const { call, response } = answer
  try {
    if (!read.complete) throw new LlmError(502, 'the answer of the provider is too large')
    const coding = response.headers.get('content-encoding')
    const decoded = decodeBody(read.bytes, coding, answerLimitOf(call.context.exchange), 'provider')
    const replaced =
      decoded instanceof Promise
        ? decoded.then((bytes) => replaceDecoded(answer, read.bytes, bytes))
        : replaceDecoded(answer, read.bytes, decoded)
    if (!(replaced instanceof Promise)) return replaced
    return replaced.catch((error: unknown) => refuseAnswer(answer, error))
  } catch (error) {
    return refuseAnswer(answer, error)
  }
}

function refuseAnswer({ call, request }: ReceivedAnswer, error: unknown): RespondVerdict {
  if (!(error instanceof LlmError)) throw error
  call.context.refusal = error.message
  return llmRefusal(request.route, error)
}

function replaceDecoded(
  answer: ReceivedAnswer,
  sent: Uint8Array,
  bytes: Uint8Array,
): Result | Promise<Result> {
  const { call, response, format } = answer
  if (call.context.over) return undefined
  const wasDecoded = bytes !== sent
  const isStreamed = isStream(answer)
  if (wasDecoded) response.headers.remove('content-encoding')
  return isStreamed && format !== undefined
    ? replaceStream(answer, bytes, format)
    : replaceWhole(answer, asBuffer(bytes), wasDecoded)
}

/** Replaces a whole streamed answer; guards check all of it before the client gets any. */
async function replaceStream(
  answer: ReceivedAnswer,
  bytes: Uint8Array,
  format: ChatFormat,
): Promise<Result> {
  const { call, response } = answer
  const conversion = { ...conversionOf(answer, format), eventLimit: bytes.length }
  const held = new HeldStream(format, convertEvents(conversion, bytes))
  const refusal = await guardHeld(call, held)
  if (call.context.over || refusal !== undefined) return refusal
  const events = held.release()
  const record = recorder(call, format)
  if (record !== undefined) for (const event of events) record(event)
  replaceBody(answer, eventBytes(events))
  describeModelCall(call)
  response.headers.set('content-type', 'text/event-stream')
  return undefined
}

/** Headers that describe the bytes that were replaced. */
const contentHeaders = ['etag', 'content-md5', 'digest', 'content-digest', 'content-range']

function replaceBody({ response, body }: ReceivedAnswer, bytes: Uint8Array): void {
  body.replace(bytes)
  for (const name of contentHeaders) response.headers.remove(name)
}

/** Replaces an answer that is not streamed. @throws LlmError 502 if it cannot be read. */
function replaceWhole(
  received: ReceivedAnswer,
  bytes: Buffer,
  wasDecoded: boolean,
): Result | Promise<Result> {
  const { call, request, format } = received
  const { status, headers } = received.response
  const put = (body: object | undefined): undefined => {
    if (body === undefined && !wasDecoded) return
    replaceBody(received, body === undefined ? bytes : Buffer.from(JSON.stringify(body)))
    if (body !== undefined) headers.set('content-type', 'application/json')
  }
  if (status >= 300) return put(readErrorAnswer(request, status, utf8Text(bytes)))
  const isGuarded = (call.policy?.responseGuards.length ?? 0) > 0
  const found = isGuarded ? undefined : detailsInBytes(request, bytes)
  if (found !== undefined) {
    call.addDetails(found)
    describeModelCall(call)
    if (format !== undefined) call.output = new WholeOutput(bytes, format)
    return put(undefined)
  }
  const text = utf8Text(bytes)
  const answer = readWholeAnswer(request, text, (name) => headers.get(name), contextNow())
  call.addDetails(answer.details)
  describeModelCall(call)
  if (format === undefined) return put(answer.isChanged ? answer.body : undefined)
  const finish = (body: JsonObject): undefined => {
    call.output = new WholeOutput(body, format)
    return put(answer.isChanged || body !== answer.body ? body : undefined)
  }
  if (!isGuarded) return finish(answer.body)
  return guardAnswer(call, answer.body, format).then(({ body, refusal }) =>
    call.context.over || refusal !== undefined ? refusal : finish(body),
  )
}
