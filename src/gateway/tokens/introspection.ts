/**
 * Asks an authorization server whether a token is valid (RFC 7662). Answers are cached under the whole token. If the
 * server does not answer, the token is not accepted.
 */
import { hash } from 'node:crypto'
import type { Claims } from '../../engines/auth/jwt/token.ts'
import { claimProblem, isFor } from '../../engines/auth/jwt/verifier.ts'
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import { isObject } from '../../ground/base/json-object.ts'
import { amount, choice, type Infer, record, text } from '../../ground/base/shape.ts'
import type { Callouts } from '../../ground/exchange/exchange.ts'
import { calloutTarget } from '../../ground/model/shapes.ts'

/** The compiled form. */
export const introspectionShape = record({
  target: calloutTarget,
  path: text,
  clientId: text,
  /** Digest of the client secret. */
  clientSecret: text,
  method: choice('ClientSecretBasic', 'ClientSecretPost'),
  cacheMs: amount,
})
export type IntrospectionConfig = Infer<typeof introspectionShape>

/** The claims of a valid token, why it is not valid, or why this is not known. */
export type Answer =
  | { readonly claims: Claims }
  | { readonly problem: string }
  | { readonly unavailable: string }

const tooMany: Answer = { unavailable: 'too many tokens are checked at the same time' }

/** What the token must have besides being active. */
interface Requirements {
  readonly issuer: string
  readonly audiences?: readonly string[] | undefined
  readonly requiredClaims?: readonly string[] | undefined
}

const timeoutMs = 5_000
const maxBytes = 65_536
/** Longer tokens are refused without a call. */
const maxTokenLength = 16_384
/** Maximum number of answers in memory; the oldest is dropped first. */
const maxAnswers = 4_096
/** How long a refusal is remembered at most. */
const refusalMs = 5_000
/** Calls under way at once. Further tokens are not checked, and refused as unavailable. */
const maxCalls = 256

interface CachedAnswer {
  readonly answer: Answer
  readonly until: number
}

export class Introspection {
  readonly #config: IntrospectionConfig
  readonly #requirements: Requirements
  readonly #secret: string
  readonly #callouts: Callouts
  readonly #valid = new BoundedMap<string, CachedAnswer>(maxAnswers)
  /** Apart from valid tokens, so that invented tokens do not displace them. */
  readonly #refused = new BoundedMap<string, CachedAnswer>(maxAnswers)
  readonly #calls = new Map<string, Promise<Answer>>()

  constructor(
    config: IntrospectionConfig,
    requirements: Requirements,
    secret: string,
    callouts: Callouts,
  ) {
    this.#config = config
    this.#requirements = requirements
    this.#secret = secret
    this.#callouts = callouts
  }

  /** Returns the answer if it is known; else asks once, however many requests have the token. */
  find(token: string): Answer | Promise<Answer> {
    if (token.length > maxTokenLength) return { problem: 'the token is invalid or malformed' }
    const key = hash('sha256', token, 'base64')
    const cached = this.#valid.get(key) ?? this.#refused.get(key)
    if (cached !== undefined && Date.now() < cached.until) return cached.answer
    this.#valid.delete(key)
    const running = this.#calls.get(key)
    if (running !== undefined) return running
    if (this.#calls.size >= maxCalls) return tooMany
    const call = this.#ask(token, key).finally(() => this.#calls.delete(key))
    this.#calls.set(key, call)
    return call
  }

  async #ask(token: string, key: string): Promise<Answer> {
    const answered = await this.#send(token)
    if (typeof answered === 'string') return { unavailable: answered }
    const problem = this.#problemOf(answered)
    const now = Date.now()
    const { cacheMs } = this.#config
    if (problem !== undefined) {
      const answer = { problem }
      this.#refused.set(key, { answer, until: now + Math.min(cacheMs, refusalMs) })
      return answer
    }
    const { active: _, ...claims } = answered
    const answer = { claims: { iss: this.#requirements.issuer, ...claims } }
    const endsAt = typeof claims.exp === 'number' ? claims.exp * 1_000 : Number.POSITIVE_INFINITY
    this.#valid.set(key, { answer, until: Math.min(endsAt, now + cacheMs) })
    return answer
  }

  #problemOf(answered: Claims): string | undefined {
    if (answered.active !== true) return 'the token is not active'
    const { issuer, audiences, requiredClaims = [] } = this.#requirements
    if (answered.iss !== undefined && answered.iss !== issuer)
      return 'the token is of another issuer'
    if (audiences !== undefined && !isFor(audiences, answered.aud)) {
      return 'the token is for another audience'
    }
    return claimProblem(answered, requiredClaims, Date.now())
  }

  /** Resolves to the JSON object of the server, or to why there is none. */
  async #send(token: string): Promise<Claims | string> {
    const { target, path, clientId, method } = this.#config
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
    const isBasic = method === 'ClientSecretBasic'
    if (!isBasic) {
      form.set('client_id', clientId)
      form.set('client_secret', this.#secret)
    }
    const headers: [string, string][] = [
      ['content-type', 'application/x-www-form-urlencoded'],
      ['accept', 'application/json'],
    ]
    if (isBasic) headers.push(['authorization', basic(clientId, this.#secret)])
    try {
      const { status, body } = await this.#callouts.http({
        target,
        method: 'POST',
        path,
        headers,
        body: Buffer.from(form.toString()),
        timeoutMs,
        maxResponseBytes: maxBytes,
      })
      if (status !== 200) return `the introspection endpoint responds with ${status}`
      const answered: unknown = JSON.parse(Buffer.from(body).toString())
      return isObject(answered) && typeof answered.active === 'boolean' ? answered : unreadable
    } catch (error) {
      if (error instanceof SyntaxError) return unreadable
      return `the introspection endpoint cannot be reached: ${(error as Error).message}`
    }
  }
}

const unreadable = 'the introspection endpoint sends no answer that can be read'

/** Client credentials as RFC 6749 section 2.3.1 encodes them. */
function basic(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams({ a: text }).toString().slice(2)
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')}`
}
