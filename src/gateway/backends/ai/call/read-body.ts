/** Reads the body of a client's request, once for all attempts. */
import type { KnownFormat } from '../../../../engines/messages/formats/index.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { ClientBody } from '../../../../engines/messages/request/client-body.ts'
import { bufferOf } from '../../../../ground/base/buffers.ts'
import type { BufferedBody } from '../../../../ground/exchange/exchange.ts'
import { repeatedRequest, repetitionOf } from '../answers/repeated-requests.ts'
import { allowedModelsOf } from './allowed-models.ts'
import { sourcesOf } from './answer-key.ts'
import { decodeBody } from './content-coding.ts'
import { readForm, sendsForm } from './form-request.ts'
import type { ModelCall, ReadBody } from './model-call.ts'

export function readClientBody(call: ModelCall, format: KnownFormat): ReadBody | Promise<ReadBody> {
  const known = call.clientBody
  if (known !== undefined) {
    if (known instanceof ClientBody) identify(call, format, known.bytes)
    return known
  }
  if (sendsForm(call, format)) return readForm(call).then((form) => keep(call, form))
  const { bufferLimit, request, requestBody } = call.context.exchange
  const body = requestBody.read(bufferLimit)
  const isPlain = request.headers.get('content-encoding') === undefined
  return body instanceof Promise || !isPlain
    ? awaitClientBody(call, format, body)
    : keepClientBody(call, format, needWhole(body, bufferLimit))
}

async function awaitClientBody(
  call: ModelCall,
  format: KnownFormat,
  pending: BufferedBody | Promise<BufferedBody>,
): Promise<ClientBody> {
  const { bufferLimit, request } = call.context.exchange
  const bytes = needWhole(await pending, bufferLimit)
  const coding = request.headers.get('content-encoding')
  return keepClientBody(call, format, await decodeBody(bytes, coding, bufferLimit, 'client'))
}

/** @throws LlmError 413 if the body is larger than the limit. */
function needWhole(body: BufferedBody, limit: number): Uint8Array {
  if (!body.complete) throw new LlmError(413, `the body has more than ${limit} bytes`)
  return body.bytes
}

function keepClientBody(call: ModelCall, format: KnownFormat, bytes: Uint8Array): ClientBody {
  identify(call, format, bytes)
  const repeated = repeatedRequest(call.repetition)
  if (repeated !== undefined) return keep(call, new ClientBody(bufferOf(bytes), repeated.scanned))
  const mayPassOn = call.policy?.guardsRequests !== true && call.policy?.config.prompt === undefined
  const { path, query } = call.context.exchange.request
  const inPath = format.inPath?.(call.path ?? path, query)
  const client = new ClientBody(bufferOf(bytes), mayPassOn ? format : undefined, inPath)
  return keep(call, client)
}

function keep<Kind extends ReadBody>(call: ModelCall, client: Kind): Kind {
  call.clientBody = client
  call.context.exchange.learned.describeLlmRequest(client)
  return client
}

/** Sets the id by which the answer cache recognises a repeated request. It depends on the chosen provider. */
function identify(call: ModelCall, format: KnownFormat, bytes: Uint8Array): void {
  const isRead = call.policy?.config.cache === undefined || isReadWhole(call)
  const sources = isRead ? undefined : sourcesOf(call, format)
  call.repetition = sources && repetitionOf(sources, bytes)
}

/** Whether the gateway must read more than a few members of the request. */
export const isReadWhole = (call: ModelCall): boolean =>
  isGuarded(call) || hasAuditsOnly(call) || allowedModelsOf(call) !== undefined

export const isGuarded = ({ policy }: ModelCall): boolean => policy?.guardsRequests === true

export const hasAuditsOnly = (call: ModelCall): boolean =>
  !isGuarded(call) && (call.policy?.requestGuards.length ?? 0) > 0
