/** The answer of a provider, on its way to the client. */

import type { Mask } from '../../core/index.ts'
import type { RespondVerdict } from '../../exchange/exchange.ts'
import type { AnswerContext } from '../../llm/client-formats.ts'
import { mapAnswerTexts } from '../../llm/guards/texts.ts'
import { LlmError } from '../../llm/llm-error.ts'
import { readErrorAnswer, readWholeAnswer } from '../../llm/serve/answer.ts'
import { chatFormatOf, type OutgoingRequest } from '../../llm/serve/request.ts'
import { AnswerStream } from '../../llm/serve/stream.ts'
import type { ServerExchange } from '../engine/types.ts'
import { now } from '../upstream/choose.ts'
import type { Walk } from '../walk.ts'
import { decodeBody } from './content-coding.ts'
import type { ModelCall } from './model-call.ts'
import { llmRefusal } from './own-answers.ts'
import { newId } from './prepare.ts'

type Result = RespondVerdict | undefined

/** Most bytes of an answer that is read whole, where the buffer limit of requests is lower. */
const answerLimit = 32 * 1024 * 1024

const streamTypes = /^(text\/event-stream|application\/vnd\.amazon\.eventstream)\s*(;|$)/i

/** Undefined: the response can be relayed, now or once the promise resolves. */
export function receiveAnswer(walk: Walk): Result | Promise<Result> {
  const { model: call, exchange } = walk
  const { response, responseBody } = exchange
  const outgoing = call?.outgoing
  if (call === undefined || outgoing === undefined) return undefined
  if (response === undefined || responseBody === undefined) return undefined
  const isStream = streamTypes.test(response.headers.get('content-type') ?? '')
  const isEncoded = isCoded(response.headers.get('content-encoding'))
  if (response.status < 300 && isStream && !isEncoded && chatFormatOf(outgoing.route)) {
    response.headers.set('content-type', 'text/event-stream')
    responseBody.through(streamOf(call, outgoing, exchange))
    return undefined
  }
  return receiveWhole(walk, call, outgoing, isStream)
}

const isCoded = (coding: string | undefined): boolean =>
  coding !== undefined && coding !== '' && coding.toLowerCase() !== 'identity'

function contextNow(): AnswerContext {
  return { created: Math.floor(Date.now() / 1_000), newId }
}

function masksOf(call: ModelCall): readonly Mask[] {
  return (call.policy?.responseGuards ?? []).flatMap((guard) =>
    guard.type === 'regex' ? [guard.mask] : [],
  )
}

function streamOf(
  call: ModelCall,
  request: OutgoingRequest,
  { bufferLimit }: ServerExchange,
): AnswerStream {
  return new AnswerStream({
    request,
    clientBody: call.clientBody ?? {},
    masks: masksOf(call),
    limit: bufferLimit,
    context: contextNow(),
    onFacts: (facts) => call.learn(facts),
    onContent: () => {
      call.lastContentAt = now()
      call.firstContentAt ??= call.lastContentAt
    },
  })
}

const answerStatuses = { unknown: 502, damaged: 502, tooLarge: 502 }

async function receiveWhole(
  walk: Walk,
  call: ModelCall,
  request: OutgoingRequest,
  isStream: boolean,
): Promise<Result> {
  const { exchange } = walk
  const { response, responseBody } = exchange
  if (response === undefined || responseBody === undefined) return undefined
  const body = await responseBody.buffer(Math.max(exchange.bufferLimit, answerLimit))
  if (walk.over) return undefined
  try {
    if (!body.complete) throw new LlmError(502, 'the answer of the provider is too large')
    const coding = response.headers.get('content-encoding')
    const bytes = await decodeBody(body.bytes, coding, answerLimit, answerStatuses)
    if (walk.over) return undefined
    if (bytes !== body.bytes) response.headers.remove('content-encoding')
    if (isStream && response.status < 300) {
      responseBody.replace(convertAtOnce(streamOf(call, request, exchange), bytes))
      response.headers.set('content-type', 'text/event-stream')
    } else {
      replaceWhole(exchange, call, request, bytes, bytes !== body.bytes)
    }
    return undefined
  } catch (error) {
    if (error instanceof LlmError) return llmRefusal(request.route, error)
    throw error
  }
}

function convertAtOnce(stream: AnswerStream, bytes: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = []
  stream.push(bytes, (part) => parts.push(part))
  stream.end((part) => parts.push(part))
  return Buffer.concat(parts)
}

/** Headers that speak of the bytes that were replaced. */
const ofTheBytes = ['etag', 'content-md5', 'digest', 'content-digest', 'content-range']

/** @throws LlmError 502 */
function replaceWhole(
  { response, responseBody }: ServerExchange,
  call: ModelCall,
  request: OutgoingRequest,
  bytes: Uint8Array,
  wasDecoded: boolean,
): void {
  if (response === undefined || responseBody === undefined) return
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  const { status, headers } = response
  const put = (body: object | undefined) => {
    if (body === undefined && !wasDecoded) return
    responseBody.replace(body === undefined ? bytes : Buffer.from(JSON.stringify(body)))
    if (body !== undefined) headers.set('content-type', 'application/json')
    for (const name of ofTheBytes) headers.remove(name)
  }
  if (status >= 300) {
    put(readErrorAnswer(request, status, text))
    return
  }
  const answer = readWholeAnswer(request, text, (name) => headers.get(name), contextNow())
  call.learn({
    ...(answer.model !== undefined && { model: answer.model }),
    ...(answer.usage && { usage: answer.usage }),
  })
  const format = chatFormatOf(request.route)
  const masked =
    format === undefined
      ? answer.body
      : masksOf(call).reduce(
          (body, mask) => mapAnswerTexts(body, format, (part) => mask.apply(part).text),
          answer.body,
        )
  put(answer.isChanged || masked !== answer.body ? masked : undefined)
}
