/**
 * The key of a stored answer. It contains everything that the answer depends on, so that no other configuration, model,
 * guard or client finds it.
 */
import { hash } from 'node:crypto'
import type { ClientFormat } from '../../../../engines/messages/format.ts'
import type { KnownFormat } from '../../../../engines/messages/formats/index.ts'
import { ClientBody } from '../../../../engines/messages/request/client-body.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { BoundedMap } from '../../../../ground/base/bounded-map.ts'
import { canonicalBytes, canonicalJson } from '../../../../ground/base/canonical.ts'
import type { FieldPair } from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import type { ModelProvider } from '../../../../ground/model/model-providers.ts'
import { ownerDigest } from '../../../principal/principal.ts'
import { whyNotCacheable } from '../answers/cacheable.ts'
import { rememberRequest, repeatedRequest } from '../answers/repeated-requests.ts'
import type { CacheConfig } from '../policy/config.ts'
import type { ModelCall } from './model-call.ts'
import { canJudgeAgain, isJudgedByService } from './served-answers.ts'

/** Changed if answers of this version must not be served by another one. */
const keyVersion = 1

const cacheable: readonly ClientFormat['operation'][] = ['chat', 'embeddings', 'rerank']

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
export function ownerOf(
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

/** Returns the key of the answer, or why the cache does not apply. */
export function keyFor(
  call: ModelCall,
  outgoing: OutgoingRequest,
  cache: CacheConfig,
): string | { readonly whyNot: string } {
  const whyNot = whyNotFor(call, outgoing)
  if (whyNot !== undefined) return { whyNot }
  const owner = ownerOf(call, cache)
  if (owner === undefined) return { whyNot: 'nothing says who the client is' }
  const { repetition } = call
  const known = repeatedRequest(repetition)?.key
  if (known !== undefined) return known
  const body = call.request?.body
  const whole = body?.whole ?? {}
  const refused = whyNotCacheable(whole)
  if (refused !== undefined) return { whyNot: refused }
  const key = digestOf([inputsOf(call, outgoing, owner), whole])
  // A ClientBody has not been changed by guards or settings.
  const scanned = body instanceof ClientBody ? body.scanned : undefined
  if (repetition !== undefined && scanned !== undefined) {
    rememberRequest(repetition, { scanned, outgoing, key })
  }
  return key
}

const sha256 = (bytes: Uint8Array | string): string => hash('sha256', bytes, 'base64url')
const digestOf = (value: unknown): string => sha256(canonicalBytes(value))

/** For the header pattern of a vendor: whether a header with a name changes answers. Most requests repeat the same names. */
const changing = new WeakMap<RegExp, BoundedMap<string, boolean>>()

function changesAnswers(name: string, vendorHeaders: RegExp): boolean {
  let names = changing.get(vendorHeaders)
  if (names === undefined) {
    names = new BoundedMap(256)
    changing.set(vendorHeaders, names)
  }
  let found = names.get(name)
  if (found === undefined) {
    const lower = name.toLowerCase()
    found = vendorHeaders.test(lower) && !ofTransport.test(lower)
    if (name.length < 64) names.set(name, found)
  }
  return found
}

/** Returns everything that the answer depends on, except for the body of the request. */
export function inputsOf(call: ModelCall, outgoing: OutgoingRequest, owner: string): unknown {
  const { context, policy, provider, catalog } = call
  const { format, model, asked, isStream, framing, plan } = outgoing
  const { query } = context.exchange.request
  return [
    [keyVersion, context.exchange.backend?.name, owner, policy?.fingerprint],
    [
      provider && fingerprintOf(provider.provider),
      catalog.digest,
      plan.path,
      query,
      headersOf(call, format),
    ],
    [format.name, model, asked, isStream, framing],
  ]
}

/**
 * Returns everything that the preparation of a request and the key of its answer depend on, except for its bytes;
 * undefined if nothing says who the client is.
 */
export function sourcesOf(call: ModelCall, format: KnownFormat): readonly unknown[] | undefined {
  const { context, policy, provider, catalog, selection, path } = call
  const cache = policy?.config.cache
  const owner = cache && ownerOf(call, cache)
  if (owner === undefined) return undefined
  const { request, backend } = context.exchange
  return [
    [backend?.name, owner, policy?.fingerprint, selection === undefined, selection?.sent],
    [provider && fingerprintOf(provider.provider), catalog.digest, headersOf(call, format)],
    [format.name, path, request.path, request.query],
  ]
}

/** Returns the headers that change answers. */
function headersOf({ context }: ModelCall, format: KnownFormat): readonly FieldPair[] {
  const { vendorHeaders } = format as ClientFormat
  const named: FieldPair[] = []
  for (const [name, value] of context.exchange.request.headers.entries()) {
    if (changesAnswers(name, vendorHeaders)) named.push([name.toLowerCase(), value])
  }
  return named
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
