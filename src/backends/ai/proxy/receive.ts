/** The answer of a provider, on its way to the client. */

import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { StreamEvent } from '../chat.ts'
import type { AnswerContext, ChatFormat } from '../client-formats.ts'
import { HeldStream } from '../guards/held-stream.ts'
import type { JsonObject } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { readErrorAnswer, readWholeAnswer } from '../serve/answer.ts'
import type { ConversionOptions } from '../serve/conversion.ts'
import { chatFormatOf, type OutgoingRequest } from '../serve/request.ts'
import { type Said, SaidStream, saidIn } from '../serve/said.ts'
import { AnswerStream, convertEvents, eventBytes } from '../serve/stream.ts'
import { decodeBody } from './content-coding.ts'
import type { ModelCall } from './model-call.ts'
import { describeModelCall } from './model-facts.ts'
import { llmRefusal } from './own-answers.ts'
import { newId } from './prepare.ts'
import { guardAnswer, guardHeld, holdsAnswer, masksOf } from './response-guards.ts'

type Result = RespondVerdict | undefined

/** Most bytes of an answer that is read whole, where the buffer limit of requests is lower. */
const answerLimit = 32 * 1024 * 1024

const answerLimitOf = ({ bufferLimit }: ServerExchange): number =>
  Math.max(bufferLimit, answerLimit)

const streamTypes = /^(text\/event-stream|application\/vnd\.amazon\.eventstream)\s*(;|$)/i

/** Undefined: the response can be relayed, now or once the promise resolves. */
export function receiveAnswer(context: RequestContext, call: ModelCall): Result | Promise<Result> {
  const { exchange } = context
  const { response, responseBody } = exchange
  const { outgoing } = call
  if (outgoing === undefined) return undefined
  if (response === undefined || responseBody === undefined) return undefined
  const isStream = streamTypes.test(response.headers.get('content-type') ?? '')
  const isEncoded = isCoded(response.headers.get('content-encoding'))
  const isPassing = !isEncoded && !holdsAnswer(call)
  if (response.status < 300 && isStream && isPassing && chatFormatOf(outgoing.route)) {
    response.headers.set('content-type', 'text/event-stream')
    const stream = new AnswerStream({
      ...conversionOf(context, call, outgoing),
      masks: masksOf(call),
      maskLimit: exchange.bufferLimit,
      onEvent: listener(context, call, outgoing),
    })
    call.stream = stream
    responseBody.through(stream)
    return undefined
  }
  return receiveWhole(context, call, outgoing, isStream)
}

const isCoded = (coding: string | undefined): boolean =>
  coding !== undefined && coding !== '' && coding.toLowerCase() !== 'identity'

function contextNow(): AnswerContext {
  return { created: Math.floor(Date.now() / 1_000), newId }
}

/** Writes down what the model says; undefined where nobody wants to know. */
function listener(
  { observers, exchange }: RequestContext,
  call: ModelCall,
  { route }: OutgoingRequest,
) {
  const format = observers.parts.modelTexts ? chatFormatOf(route) : undefined
  if (format === undefined) return undefined
  const said = new SaidStream(format, exchange.bufferLimit)
  call.said = said
  return (event: StreamEvent) => said.push(event)
}

function conversionOf(
  { exchange }: RequestContext,
  call: ModelCall,
  request: OutgoingRequest,
): ConversionOptions {
  return {
    request,
    clientBody: call.clientBody ?? {},
    eventLimit: answerLimitOf(exchange),
    context: contextNow(),
    onFacts: (facts) => call.learn(facts),
    onContent: (piece) => call.hear(piece),
  }
}

const answerStatuses = { unknown: 502, damaged: 502, tooLarge: 502 }

async function receiveWhole(
  context: RequestContext,
  call: ModelCall,
  request: OutgoingRequest,
  isStream: boolean,
): Promise<Result> {
  const { exchange } = context
  const { response, responseBody } = exchange
  if (response === undefined || responseBody === undefined) return undefined
  const limit = answerLimitOf(exchange)
  const body = await responseBody.buffer(limit)
  if (context.over) return undefined
  try {
    if (!body.complete) throw new LlmError(502, 'the answer of the provider is too large')
    const coding = response.headers.get('content-encoding')
    const bytes = await decodeBody(body.bytes, coding, limit, answerStatuses)
    if (context.over) return undefined
    const wasDecoded = bytes !== body.bytes
    if (wasDecoded) response.headers.remove('content-encoding')
    return isStream && response.status < 300 && chatFormatOf(request.route) !== undefined
      ? await replaceStream(context, call, request, bytes)
      : await replaceWhole(context, call, request, { bytes, wasDecoded })
  } catch (error) {
    if (error instanceof LlmError) {
      context.refusal = error.message
      return llmRefusal(request.route, error)
    }
    throw error
  }
}

/** A stream that has come whole: guards judge all of it before the client gets any. */
async function replaceStream(
  context: RequestContext,
  call: ModelCall,
  request: OutgoingRequest,
  bytes: Uint8Array,
): Promise<Result> {
  const { exchange } = context
  const format = chatFormatOf(request.route) ?? 'Completions'
  const conversion = { ...conversionOf(context, call, request), eventLimit: bytes.length }
  const held = new HeldStream(format, convertEvents(conversion, bytes))
  const refusal = await guardHeld(context, call, held)
  if (context.over || refusal !== undefined) return refusal
  const events = held.release()
  const listen = listener(context, call, request)
  if (listen !== undefined) for (const event of events) listen(event)
  exchange.responseBody?.replace(eventBytes(events))
  describeModelCall(context, call)
  exchange.response?.headers.set('content-type', 'text/event-stream')
  forgetBytes(exchange)
  return undefined
}

/** Of a whole answer; read only where an expression asks. */
function said(body: JsonObject, format: ChatFormat): Said {
  let read: Said | undefined
  const once = () => (read ??= saidIn(body, format))
  return {
    get completion() {
      return once().completion
    },
    get toolCalls() {
      return once().toolCalls
    },
  }
}

/** Headers that speak of the bytes that were replaced. */
const ofTheBytes = ['etag', 'content-md5', 'digest', 'content-digest', 'content-range']

function forgetBytes({ response }: ServerExchange): void {
  for (const name of ofTheBytes) response?.headers.remove(name)
}

interface ReadBody {
  readonly bytes: Uint8Array
  readonly wasDecoded: boolean
}

/** @throws LlmError 502 */
async function replaceWhole(
  context: RequestContext,
  call: ModelCall,
  request: OutgoingRequest,
  { bytes, wasDecoded }: ReadBody,
): Promise<Result> {
  const { exchange } = context
  const { response, responseBody } = exchange
  if (response === undefined || responseBody === undefined) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  const { status, headers } = response
  const put = (body: object | undefined): undefined => {
    if (body === undefined && !wasDecoded) return
    responseBody.replace(body === undefined ? bytes : Buffer.from(JSON.stringify(body)))
    if (body !== undefined) headers.set('content-type', 'application/json')
    forgetBytes(exchange)
  }
  if (status >= 300) return put(readErrorAnswer(request, status, text))
  const answer = readWholeAnswer(request, text, (name) => headers.get(name), contextNow())
  const { body: _body, isChanged: _isChanged, ...facts } = answer
  call.learn(facts)
  describeModelCall(context, call)
  const format = chatFormatOf(request.route)
  if (format === undefined) return put(answer.isChanged ? answer.body : undefined)
  const { body, refusal } = await guardAnswer(context, call, answer.body, format)
  if (context.over || refusal !== undefined) return refusal
  call.said = said(body, format)
  return put(answer.isChanged || body !== answer.body ? body : undefined)
}
