/**
 * The cache of answers: serves an answer that the same client has got to the same request, and keeps new ones. The key
 * contains everything that an answer depends on, so that no other configuration, model, guard or client finds it. The
 * cache keeps what the client got, after all guards.
 */
import { chatFormatOf } from '../../../../engines/messages/format.ts'
import { isObject, parseJson, utf8Text } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { Completeness } from '../../../../engines/messages/response/completeness.ts'
import { andThen } from '../../../../ground/base/and-then.ts'
import type {
  BodyTransform,
  FieldPair,
  RespondVerdict,
} from '../../../../ground/exchange/exchange.ts'
import type { StoredAnswer } from '../answers/answer-memory.ts'
import type { AnswerUse } from '../answers/answer-use.ts'
import {
  type CacheDirectives,
  forbidsStoring,
  readCacheDirectives,
} from '../answers/cache-control.ts'
import { admitCall } from './admission.ts'
import { inputsOf, keyFor, ownerOf } from './answer-key.ts'
import type { ModelCall } from './model-call.ts'
import { isJudgedByService, judgeAgain } from './served-answers.ts'
import { findSimilar, keepVector } from './similar-answers.ts'

/** Returns an answer that may be served in place of the request; undefined if the provider must be asked. */
export function findAnswer(
  call: ModelCall,
  outgoing: OutgoingRequest,
): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
  call.answer = undefined
  call.completeness = undefined
  const cache = call.policy?.config.cache
  if (cache === undefined) return undefined
  const directives = readCacheDirectives(call.context.exchange.request.headers)
  const key = directives.mayStore
    ? keyFor(call, outgoing, cache)
    : { whyNot: 'the client opts out' }
  if (call.flightMember?.key !== key) leaveFlight(call)
  if (typeof key !== 'string') {
    const { whyNot: detail } = key
    call.answer = { result: 'bypass', detail, key: undefined, ttlMs: 0, hit: undefined }
    return missed(directives)
  }
  call.answer = { result: 'miss', detail: undefined, key, ttlMs: cache.ttlMs, hit: undefined }
  if (!directives.mayServe) return missed(directives)
  return andThen(call.answers.find(key), serveFound, call, outgoing, directives)
}

function serveFound(
  found: StoredAnswer | undefined,
  call: ModelCall,
  outgoing: OutgoingRequest,
  directives: CacheDirectives,
): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
  if (call.context.over) return undefined
  const ageMs = found === undefined ? 0 : Date.now() - found.storedAt
  const { maxAgeMs, minFreshMs } = directives
  if (maxAgeMs === 0 || minFreshMs > (call.answer?.ttlMs ?? 0)) return missed(directives)
  const leftMs = found === undefined ? 0 : found.expiresAt - found.storedAt - ageMs
  if (found === undefined || ageMs > maxAgeMs || leftMs < minFreshMs) {
    if (!directives.mayServeSimilar || call.policy?.config.cache?.semantic === undefined) {
      return missed(directives) ?? collapse(call, outgoing, directives)
    }
    const joined = directives.isOnlyCached ? undefined : collapse(call, outgoing, directives)
    return andThen(joined, serveSimilar, call, outgoing, directives)
  }
  call.flightMember?.complete(found)
  return serve(found, ageMs, call, outgoing)
}

/** Serves the answer to a similar request, unless `joined` is the answer to an equal one. */
async function serveSimilar(
  joined: RespondVerdict | undefined,
  call: ModelCall,
  outgoing: OutgoingRequest,
  directives: CacheDirectives,
): Promise<RespondVerdict | undefined> {
  const cache = call.policy?.config.cache
  const owner = cache && ownerOf(call, cache)
  if (joined !== undefined || call.context.over || owner === undefined) return joined
  // The embedding costs something too.
  const refused = await admitCall(call, outgoing)
  if (refused !== undefined || call.context.over) return refused
  const since = Date.now() - directives.maxAgeMs
  const found = await findSimilar(call, outgoing, inputsOf(call, outgoing, owner), since)
  if (call.context.over) return undefined
  if (found === undefined || found.expiresAt - Date.now() < directives.minFreshMs) {
    if (call.answer !== undefined) call.answer.detail = call.comparison?.problem
    return missed(directives)
  }
  call.flightMember?.complete(found)
  return serve(found, Date.now() - found.storedAt, call, outgoing)
}

/**
 * Waits for the answer to an equal request that is under way, if there is one. A stream does not wait: it would get
 * its first token only after the last one of the other stream.
 */
function collapse(
  call: ModelCall,
  outgoing: OutgoingRequest,
  directives: CacheDirectives,
): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
  const { answer, flightMember: before, policy } = call
  const waitMs = policy?.config.cache?.collapseMs ?? 0
  // A retry is a member of the flight already.
  if (waitMs === 0 || outgoing.isStream || answer?.key === undefined || before !== undefined) {
    return undefined
  }
  const member = call.flights.join(answer.key, waitMs)
  call.flightMember = member
  return member?.answer?.then((found) => {
    if (found === undefined || call.context.over || !mayGet(found, directives)) return undefined
    const ageMs = Date.now() - found.storedAt
    return serve(found, ageMs, call, outgoing, 'waited for an equal request')
  })
}

/** Whether a client accepts the answer that an equal request has got, which may be stored and similar. */
function mayGet(
  { storedAt, expiresAt, similarity }: StoredAnswer,
  { mayServeSimilar, maxAgeMs, minFreshMs }: CacheDirectives,
): boolean {
  const now = Date.now()
  const isAccepted = mayServeSimilar || similarity === undefined
  return isAccepted && now - storedAt <= maxAgeMs && expiresAt - now >= minFreshMs
}

function leaveFlight(call: ModelCall): void {
  call.flightMember?.leave()
  call.flightMember = undefined
}

function serve(
  found: StoredAnswer,
  ageMs: number,
  call: ModelCall,
  outgoing: OutgoingRequest,
  wait?: string,
): RespondVerdict | Promise<RespondVerdict> {
  call.answer = { result: 'hit', detail: wait, key: undefined, ttlMs: 0, hit: found }
  const status = wait === undefined ? 'hit' : 'fwd=miss; collapsed'
  if (!isJudgedByService(call)) return hitOf(found, ageMs, found.body, status)
  return judgeAgain(call, found, outgoing).then((judged) => {
    if (!('kind' in judged)) return hitOf(found, ageMs, judged, status)
    const detail = 'a guard refuses the stored answer'
    call.answer = { result: 'bypass', detail, key: undefined, ttlMs: 0, hit: undefined }
    return judged
  })
}

function hitOf(
  found: StoredAnswer,
  ageMs: number,
  body: Uint8Array,
  status: string,
): RespondVerdict {
  const headers = hitHeaders(found, ageMs, status)
  return { kind: 'respond', status: 200, headers, body, reason: 'CacheHit' }
}

interface HitHeaders {
  readonly status: string
  /** In seconds. */
  readonly age: number
  readonly left: number
  readonly fields: readonly FieldPair[]
}

/** The last headers of each answer, which are the same for hits within a second. */
const lastHeaders = new WeakMap<StoredAnswer, HitHeaders>()

function hitHeaders(found: StoredAnswer, ageMs: number, status: string): HitHeaders['fields'] {
  const age = Math.floor(ageMs / 1_000)
  const left = Math.floor((found.expiresAt - found.storedAt - ageMs) / 1_000)
  const last = lastHeaders.get(found)
  if (last?.age === age && last.left === left && last.status === status) return last.fields
  const fields: FieldPair[] = [
    ['content-type', found.contentType],
    ['age', `${age}`],
    ['cache-status', `sluice; ${status}; ttl=${left}${found.similarity ? '; detail=similar' : ''}`],
  ]
  lastHeaders.set(found, { status, age, left, fields })
  return fields
}

/** @throws LlmError 504 if the client accepts only a stored answer */
function missed({ isOnlyCached }: CacheDirectives): undefined {
  if (isOnlyCached) throw new LlmError(504, 'no answer to this request is stored')
}

/** Stores the answer that the client gets, if it may be served again. */
export function keepAnswer(call: ModelCall): void {
  const { answer, outgoing, context } = call
  const { response, responseBody } = context.exchange
  if (answer === undefined || answer.hit !== undefined || response === undefined) return
  response.headers.add('cache-status', `sluice; fwd=${answer.key ? 'miss' : 'bypass'}`)
  if (answer.key === undefined || outgoing === undefined || responseBody === undefined) return
  const known = call.stream === undefined ? responseBody.known : undefined
  if (response.status !== 200) {
    // The next equal request may succeed.
    leaveFlight(call)
    skip(call, answer, 'the status is not 200')
  } else if (forbidsStoring(response.headers)) skip(call, answer, 'the provider forbids it')
  else if (known === undefined) responseBody.through(new AnswerCopy(call, answer))
  else if (known.complete && isWholeAnswer(call, outgoing, known.bytes)) {
    keep(call, answer, known.bytes)
  } else skip(call, answer, incomplete)
}

const incomplete = 'the answer was cut, filtered or refused'

function skip({ flightMember }: ModelCall, answer: AnswerUse, detail: string): void {
  flightMember?.complete(undefined)
  answer.detail = `not stored: ${detail}`
}

function isWholeAnswer(call: ModelCall, { format }: OutgoingRequest, bytes: Uint8Array): boolean {
  if (chatFormatOf(format) !== undefined && call.completeness?.isComplete === true) return true
  const body = parseJson(utf8Text(bytes))
  if (!isObject(body)) return false
  if (chatFormatOf(format) === undefined) return format.hasResponse(body)
  const completeness = new Completeness()
  completeness.read(body)
  return completeness.isComplete
}

function keep(call: ModelCall, answer: AnswerUse, body: Uint8Array): void {
  const { response } = call.context.exchange
  const storedAt = Date.now()
  const { cost } = call
  answer.result = 'stored'
  const stored: StoredAnswer = {
    key: answer.key ?? '',
    contentType: response?.headers.get('content-type') ?? 'application/json',
    body,
    model: call.details.model,
    cost: cost === undefined || cost.status === 'unknown' ? undefined : cost.total,
    storedAt,
    expiresAt: storedAt + answer.ttlMs,
  }
  call.answers.store(stored)
  keepVector(call, stored)
  call.flightMember?.complete(stored)
}

/** Largest answer that is copied while it passes, in bytes. */
const maxCopy = 4 * 1024 * 1024

/** Copies a streamed answer while it passes, and stores it if it is complete. */
class AnswerCopy implements BodyTransform {
  readonly #call: ModelCall
  readonly #answer: AnswerUse
  #pieces: Uint8Array[] | undefined = []
  #size = 0

  constructor(call: ModelCall, answer: AnswerUse) {
    this.#call = call
    this.#answer = answer
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    this.#size += chunk.length
    if (this.#size > maxCopy) this.#pieces = undefined
    // The bytes may be overwritten after the call.
    this.#pieces?.push(Buffer.from(chunk))
    emit(chunk)
  }

  end(): void {
    const pieces = this.#pieces
    this.#pieces = undefined
    const { completeness, stream } = this.#call
    const isGood = completeness?.isComplete === true && stream?.hasFailed === false
    if (pieces === undefined) skip(this.#call, this.#answer, 'the answer is too large')
    else if (isGood) keep(this.#call, this.#answer, Buffer.concat(pieces))
    else if (stream?.hasFailed === true) this.fail()
    else skip(this.#call, this.#answer, incomplete)
  }

  fail(): void {
    this.#pieces = undefined
    // The next equal request may succeed, and the others wait for it.
    leaveFlight(this.#call)
    skip(this.#call, this.#answer, incomplete)
  }
}
