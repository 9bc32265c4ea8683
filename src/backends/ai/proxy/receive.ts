/** Turns the answer of a provider into the answer for the client. */
import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import type { Body, RespondVerdict, ResponseHead } from '../../../exchange/exchange.ts'
import type { AnswerContext, StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { HeldStream } from '../guards/held-stream.ts'
import { type JsonObject, utf8Text } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { readErrorAnswer, readWholeAnswer } from '../serve/answer.ts'
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

/** Returns the response to send instead; undefined if the provider's response can be relayed. */
export function receiveAnswer(call: ModelCall): Result | Promise<Result> {
  const { exchange } = call.context
  const { response, responseBody: body } = exchange
  const { outgoing: request } = call
  if (request === undefined || response === undefined || body === undefined) return undefined
  const answer = { call, request, response, body, format: chatFormatOf(request.route) }
  const { format } = answer
  const isStream =
    response.status < 300 && streamTypes.test(response.headers.get('content-type') ?? '')
  if (!isStream || format === undefined) return receiveWhole(answer, undefined)
  if (isCoded(response.headers.get('content-encoding')) || holdsAnswer(call)) {
    return receiveWhole(answer, format)
  }
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
    clientBody: call.clientBody ?? {},
    eventLimit: answerLimitOf(call.context.exchange),
    context: contextNow(),
    onDetails: (details) => call.addDetails(details),
    onContent: (bytes) => call.noteContent(bytes),
  }
}

/** `streamFormat` is the format of a streamed answer; undefined if the answer is not streamed. */
async function receiveWhole(
  answer: ReceivedAnswer,
  streamFormat: ChatFormat | undefined,
): Promise<Result> {
  const { call, request, response, body } = answer
  const { context } = call
  const limit = answerLimitOf(context.exchange)
  const read = await body.buffer(limit)
  if (context.over) return undefined
  try {
    if (!read.complete) throw new LlmError(502, 'the answer of the provider is too large')
    const coding = response.headers.get('content-encoding')
    const decoded = decodeBody(read.bytes, coding, limit, 'provider')
    const bytes = decoded instanceof Promise ? await decoded : decoded
    if (context.over) return undefined
    const wasDecoded = bytes !== read.bytes
    if (wasDecoded) response.headers.remove('content-encoding')
    if (streamFormat !== undefined) return await replaceStream(answer, bytes, streamFormat)
    const replaced = replaceWhole(answer, bytes, wasDecoded)
    return replaced instanceof Promise ? await replaced : replaced
  } catch (error) {
    if (!(error instanceof LlmError)) throw error
    context.refusal = error.message
    return llmRefusal(request.route, error)
  }
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
  bytes: Uint8Array,
  wasDecoded: boolean,
): Result | Promise<Result> {
  const { call, request, format } = received
  const { status, headers } = received.response
  const text = utf8Text(bytes)
  const put = (body: object | undefined): undefined => {
    if (body === undefined && !wasDecoded) return
    replaceBody(received, body === undefined ? bytes : Buffer.from(JSON.stringify(body)))
    if (body !== undefined) headers.set('content-type', 'application/json')
  }
  if (status >= 300) return put(readErrorAnswer(request, status, text))
  const answer = readWholeAnswer(request, text, (name) => headers.get(name), contextNow())
  call.addDetails(answer.details)
  describeModelCall(call)
  if (format === undefined) return put(answer.isChanged ? answer.body : undefined)
  const finish = (body: JsonObject): undefined => {
    call.output = new WholeOutput(body, format)
    return put(answer.isChanged || body !== answer.body ? body : undefined)
  }
  if ((call.policy?.responseGuards.length ?? 0) === 0) return finish(answer.body)
  return guardAnswer(call, answer.body, format).then(({ body, refusal }) =>
    call.context.over || refusal !== undefined ? refusal : finish(body),
  )
}
