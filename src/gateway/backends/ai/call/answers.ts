/**
 * The cache of answers: serves an answer that the same client has got to the same request, and keeps new ones. The key
 * contains everything that an answer depends on, so that no other configuration, model, guard or client finds it. The
 * cache keeps what the client got, after all guards.
 */
import { hash } from 'node:crypto'
import { type ClientFormat, chatFormatOf } from '../../../../engines/messages/format.ts'
import { isObject, parseJson, utf8Text } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { ClientBody } from '../../../../engines/messages/request/client-body.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { Completeness } from '../../../../engines/messages/response/completeness.ts'
import { andThen } from '../../../../ground/base/and-then.ts'
import { BoundedMap } from '../../../../ground/base/bounded-map.ts'
import { canonicalBytes, canonicalJson } from '../../../../ground/base/canonical.ts'
import type {
  BodyTransform,
  FieldPair,
  RespondVerdict,
} from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import type { ModelProvider } from '../../../../ground/model/model-providers.ts'
import { ownerDigest } from '../../../principal/principal.ts'
import type { StoredAnswer } from '../answers/answer-memory.ts'
import type { AnswerUse } from '../answers/answer-use.ts'
import {
  type CacheDirectives,
  forbidsStoring,
  readCacheDirectives,
} from '../answers/cache-control.ts'
import { whyNotCacheable } from '../answers/cacheable.ts'
import type { CacheConfig } from '../policy/config.ts'
import { admitCall } from './admission.ts'
import type { ModelCall } from './model-call.ts'
import { canJudgeAgain, isJudgedByService, judgeAgain } from './served-answers.ts'
import { findSimilar, keepVector } from './similar-answers.ts'

/** Changed if answers of this version must not be served by another one. */
const keyVersion = 1

const cacheable: readonly ClientFormat['operation'][] = ['chat', 'embeddings', 'rerank']

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
  const age = Math.floor(ageMs / 1_000)
  const left = Math.floor((found.expiresAt - found.storedAt - ageMs) / 1_000)
  const headers: FieldPair[] = [
    ['content-type', found.contentType],
    ['age', `${age}`],
    ['cache-status', `sluice; ${status}; ttl=${left}${found.similarity ? '; detail=similar' : ''}`],
  ]
  return { kind: 'respond', status: 200, headers, body, reason: 'CacheHit' }
}

/** @throws LlmError 504 if the client accepts only a stored answer */
function missed({ isOnlyCached }: CacheDirectives): undefined {
  if (isOnlyCached) throw new LlmError(504, 'no answer to this request is stored')
}

/** Returns why the cache does not apply; undefined if it does. */
function whyNotFor(call: ModelCall, outgoing: OutgoingRequest): string | undefined {
  const { request } = call
  const { format, seal } = outgoing
  if (request === undefined || !cacheable.includes(format.operation))
    return 'the type of the request'
  if (seal !== undefined) return 'the provider stores the response'
  if (isJudgedByService(call) && !canJudgeAgain(outgoing))
    return 'guards cannot read stored answers'
  return undefined
}

/** Returns whose answers may be served; undefined if nothing says who the client is. */
function ownerOf(
  { context, access, restorer }: ModelCall,
  { scope }: CacheConfig,
): string | undefined {
  const { exchange } = context
  const { extensions } = exchange
  // The provider decides by this credential, which nothing else has verified.
  const isPassed = access?.policies.connection.credentials === 'client'
  const sent = isPassed ? extensions.get(forwardingExtensions.clientCredential) : undefined
  // Restored texts are the client's own, and others may know the placeholders of the request.
  const isShared = scope === 'Shared' && restorer === undefined
  const principal = isShared ? 'shared' : ownerDigest(exchange)
  if (principal === undefined && sent === undefined) return undefined
  return JSON.stringify([scope, principal ?? null, sent ?? null])
}

/** Headers of SDKs that differ between equal requests. */
const ofTransport = /stainless|session|request|retry|timeout|device|turn|window|client/

/** Keys by digests of the bytes of requests, so that repeated ones are not parsed. */
const keysOfBytes = new BoundedMap<string, string>(4_096)

/** Returns the key of the answer, or why the cache does not apply. */
function keyFor(
  call: ModelCall,
  outgoing: OutgoingRequest,
  cache: CacheConfig,
): string | { readonly whyNot: string } {
  const whyNot = whyNotFor(call, outgoing)
  if (whyNot !== undefined) return { whyNot }
  const owner = ownerOf(call, cache)
  if (owner === undefined) return { whyNot: 'nothing says who the client is' }
  const inputs = inputsOf(call, outgoing, owner)
  const body = call.request?.body
  // Guards and settings have not changed this one.
  const bytes = body instanceof ClientBody ? digestOf([inputs, sha256(body.bytes)]) : undefined
  const known = bytes && keysOfBytes.get(bytes)
  if (known !== undefined) return known
  const refused = whyNotCacheable(body?.whole ?? {})
  if (refused !== undefined) return { whyNot: refused }
  const key = digestOf([inputs, body?.whole])
  if (bytes !== undefined) keysOfBytes.set(bytes, key)
  return key
}

const sha256 = (bytes: Uint8Array): string => hash('sha256', bytes, 'base64url')
const digestOf = (value: unknown): string => sha256(canonicalBytes(value))

/** Returns everything that the answer depends on, except for the body of the request. */
function inputsOf(call: ModelCall, outgoing: OutgoingRequest, owner: string): unknown {
  const { context, policy, provider, catalog } = call
  const { format, model, asked, isStream, framing, plan } = outgoing
  const { headers, query } = context.exchange.request
  const { vendorHeaders } = format as ClientFormat
  const named: FieldPair[] = []
  for (const [name, value] of headers.entries()) {
    const lower = name.toLowerCase()
    if (vendorHeaders.test(lower) && !ofTransport.test(lower)) named.push([lower, value])
  }
  return [
    [keyVersion, context.exchange.backend?.name, owner, policy?.fingerprint],
    [provider && fingerprintOf(provider.provider), catalog.digest, plan.path, query, named],
    [format.name, model, asked, isStream, framing],
  ]
}

const fingerprints = new WeakMap<ModelProvider, string>()

function fingerprintOf(provider: ModelProvider): string {
  let found = fingerprints.get(provider)
  if (found === undefined) {
    found = hash('sha256', canonicalJson(provider), 'base64url')
    fingerprints.set(provider, found)
  }
  return found
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
