/**
 * The tokens that users let the gateway have at one service. A token belongs to a user at this service, client and set of
 * scopes, and is sealed for exactly that, so that no other user and no other policy ever gets it.
 */
import { setTimeout as after } from 'node:timers/promises'
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import { sha256 } from '../../ground/base/digest.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import {
  type GrantRecord,
  queueRevocation,
  removeGrant,
  type StoredGrant,
} from '../../ground/model/grants.ts'
import type { UserConsentConfig } from '../credentials/config.ts'
import { ProofKey, type StoredKey } from '../credentials/dpop.ts'
import type { IssuedToken, TokenEndpoint } from '../credentials/token-endpoint.ts'
import { TokenError, unavailable } from '../credentials/token-error.ts'
import type { Keyring } from '../sign-in/keyring.ts'
import { getGrant, putGrant, workerStore } from './store.ts'

/** The tokens of a user. Times are in milliseconds since the epoch. */
interface UserTokens {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  readonly obtainedAt: number
  readonly expiresAt: number
  /** The key that the tokens are bound to; omitted if they are not bound. */
  readonly key?: StoredKey
}

/** An access token that may be used. */
export interface GrantedToken {
  readonly value: string
  /** The key that the token is bound to; undefined if it is not bound. */
  readonly key: ProofKey | undefined
}

interface CachedGrant {
  readonly tokens: UserTokens
  readonly granted: GrantedToken
  readonly at: number
}

/** Who a token is for. */
export interface GrantOwner {
  /** Digest of the principal. */
  readonly id: string
  /** Name of the principal, for operators. */
  readonly name: string
}

/** How long a worker uses a token without asking the store, so that a revocation holds after this time. */
const cachedMs = 5_000
const maxCached = 4_096
/** How long one worker may renew a token before another one tries. */
const renewalMs = 15_000
const pollMs = 100
/** A token that the service refuses is renewed if it is older; a broken service would cause endless renewals. */
const minAgeMs = 10_000

const digestOf = (value: unknown): string =>
  Buffer.from(sha256(JSON.stringify(value))).toString('base64url')

export class UserGrants {
  readonly config: UserConsentConfig
  /** Digest of the service, the client there and the scopes. */
  readonly id: string
  readonly endpoint: TokenEndpoint
  readonly keyring: () => Keyring | undefined
  readonly #cached = new BoundedMap<string, CachedGrant>(maxCached)
  readonly #calls = new Map<string, Promise<GrantedToken | undefined>>()
  /** Access tokens that the service has refused, by key. */
  readonly #refused = new BoundedMap<string, string>(maxCached)

  constructor(
    config: UserConsentConfig,
    endpoint: TokenEndpoint,
    keyring: () => Keyring | undefined,
  ) {
    this.config = config
    const { endpoint: place, authorizationEndpoint, redirectURI, scopes, resources } = config
    const { url, issuer, target, path, clientAuth } = place
    const server = [url, issuer, target, path, authorizationEndpoint].map((one) => one ?? null)
    const parts = [redirectURI, ...server, clientAuth?.clientId, scopes, resources]
    this.id = digestOf(config.dpop === true ? [...parts, 'dpop'] : parts)
    this.endpoint = endpoint
    this.keyring = keyring
  }

  #keyOf({ id }: GrantOwner): string {
    return digestOf([this.id, id])
  }

  /** The access token of a user; undefined if the user has to allow it (again). */
  find(owner: GrantOwner): GrantedToken | undefined | Promise<GrantedToken | undefined> {
    const key = this.#keyOf(owner)
    const cached = this.#cached.get(key)
    if (cached !== undefined) {
      const isFresh = performance.now() - cached.at < cachedMs
      if (isFresh && !this.#isDue(key, cached.tokens)) return cached.granted
      this.#cached.delete(key)
    }
    const known = this.#calls.get(key)
    if (known !== undefined) return known
    const call = this.#load(key).finally(() => this.#calls.delete(key))
    this.#calls.set(key, call)
    return call
  }

  /** Renews the token with the next request, because the service has refused it. */
  refuse(owner: GrantOwner, token: string): void {
    const key = this.#keyOf(owner)
    this.#cached.delete(key)
    this.#refused.set(key, token)
  }

  /** Whether the tokens should be renewed. */
  #isDue(key: string, tokens: UserTokens): boolean {
    const { obtainedAt, expiresAt } = tokens
    const margin = Math.min(60_000, (expiresAt - obtainedAt) / 5)
    return Date.now() >= expiresAt - margin || this.#isRefused(key, tokens)
  }

  #isRefused(key: string, { accessToken, obtainedAt }: UserTokens): boolean {
    return this.#refused.get(key) === accessToken && Date.now() - obtainedAt > minAgeMs
  }

  async #load(key: string): Promise<GrantedToken | undefined> {
    for (const end = performance.now() + renewalMs; performance.now() < end; ) {
      const stored = await getGrant(key)
      const tokens = stored.record && this.#open(stored.record, key)
      if (tokens === undefined) return undefined
      if (!this.#isDue(key, tokens)) return this.#keep(key, tokens)
      const found = await this.#renewOnce(key, stored, tokens)
      if (found !== 'again') return found
    }
    throw new GatewayError('credentials_unavailable', 'the token of the user could not be renewed')
  }

  /** Lets one worker of one proxy renew: providers take a second use of a refresh token for theft. */
  async #renewOnce(
    key: string,
    { record, version }: StoredGrant,
    tokens: UserTokens,
  ): Promise<GrantedToken | undefined | 'again'> {
    if (record === undefined) return undefined
    const isUsable = Date.now() < tokens.expiresAt && !this.#isRefused(key, tokens)
    const usable = isUsable ? grantedOf(tokens) : undefined
    if (tokens.refreshToken === undefined) return usable
    if (record.renewingUntil > Date.now()) {
      if (usable !== undefined) return usable
      await after(pollMs)
      return 'again'
    }
    const marked = { ...record, renewingUntil: Date.now() + renewalMs }
    const marker = await putGrant(key, marked, version)
    return marker === undefined
      ? 'again'
      : this.#renew(key, { record, version: marker }, tokens, isUsable)
  }

  /** `again`: the grant was changed meanwhile. */
  async #renew(
    key: string,
    { record, version }: StoredGrant,
    old: UserTokens,
    isUsable: boolean,
  ): Promise<GrantedToken | undefined | 'again'> {
    if (record === undefined) return undefined
    try {
      const issued = await this.endpoint.request(
        'refresh_token',
        [
          ['refresh_token', old.refreshToken ?? ''],
          ...this.config.resources.map((one): [string, string] => ['resource', one]),
        ],
        { key: grantedOf(old).key },
      )
      const tokens = this.#tokensOf(issued, old.refreshToken, old.key)
      const sealed = this.#seal(tokens, key)
      const next = { ...record, sealed, renewingUntil: 0 }
      if ((await putGrant(key, next, version)) !== undefined) return this.#keep(key, tokens)
      // If the grant was removed meanwhile, the queued revocation has the old tokens, so the new ones are queued, too.
      if ((await getGrant(key)).record === undefined) {
        // The user may have been erased, so this entry has no name. Unless the user was, that of the old tokens has it.
        const removed = { record: next, nowMs: Date.now(), isErased: true }
        await queueRevocation(workerStore, `${key}.${version}.renewed`, removed)
      }
      return 'again'
    } catch (error) {
      if (!(error instanceof TokenError)) throw error
      if (error.kind === 'refused') {
        await putGrant(key, undefined, version)
        return undefined
      }
      await putGrant(key, { ...record, renewingUntil: 0 }, version)
      if (isUsable) return grantedOf(old)
      throw error
    }
  }

  /** Stores the tokens that a user has just allowed, with the key that they are bound to, if any. */
  async save(owner: GrantOwner, issued: IssuedToken, proofKey?: ProofKey): Promise<void> {
    const key = this.#keyOf(owner)
    const sealed = this.#seal(this.#tokensOf(issued, undefined, proofKey?.stored), key)
    const { redirectURI: service } = this.config
    const record = {
      service,
      client: this.id,
      principal: owner.name,
      sealed,
      createdAt: Date.now(),
      renewingUntil: 0,
    }
    for (let version: number | undefined; version === undefined; ) {
      version = await putGrant(key, record, (await getGrant(key)).version)
    }
    this.#cached.delete(key)
  }

  /** When the user has allowed access, in milliseconds since the epoch; undefined if the user has not. */
  async allowedAt(owner: GrantOwner): Promise<number | undefined> {
    return (await getGrant(this.#keyOf(owner))).record?.createdAt
  }

  /** Removes the grant of a user. Resolves to the key of the queued revocation of its tokens, if there was a grant. */
  async remove(owner: GrantOwner): Promise<string | undefined> {
    const key = this.#keyOf(owner)
    this.#cached.delete(key)
    return removeGrant(workerStore, key, Date.now())
  }

  /**
   * Revokes the tokens of a removed grant at the service. Resolves to false if the service cannot revoke tokens. Rejects
   * with a TokenError.
   */
  async revokeTokens(record: GrantRecord, key: string): Promise<boolean> {
    const tokens = this.#open(record, key)
    if (tokens === undefined) throw unavailable('the key that sealed the tokens is gone')
    const { accessToken, refreshToken, expiresAt } = tokens
    // Servers end the access token with its refresh token if they can (RFC 7009 section 2.1), but not all of them do.
    const revocations = [
      refreshToken === undefined ? false : this.endpoint.revoke(refreshToken, 'refresh_token'),
      Date.now() >= expiresAt ? false : this.endpoint.revoke(accessToken, 'access_token'),
    ]
    // A failure for one of them must not keep the other one from being revoked.
    await Promise.allSettled(revocations)
    return (await Promise.all(revocations)).includes(true)
  }

  #keep(key: string, tokens: UserTokens): GrantedToken {
    const granted = grantedOf(tokens)
    this.#cached.set(key, { tokens, granted, at: performance.now() })
    return granted
  }

  #tokensOf(
    issued: IssuedToken,
    refreshToken: string | undefined,
    key: StoredKey | undefined,
  ): UserTokens {
    const now = Date.now()
    const seconds = issued.expiresIn ?? this.config.defaultMs / 1_000
    return {
      accessToken: issued.value,
      refreshToken: issued.refreshToken ?? refreshToken,
      obtainedAt: now,
      expiresAt: now + seconds * 1_000,
      ...(key !== undefined && { key }),
    }
  }

  #seal(tokens: UserTokens, key: string): string {
    const keyring = this.keyring()
    if (keyring === undefined) throw unavailable('the key that seals grants has not arrived')
    return keyring.seal(JSON.stringify(tokens), `grant ${key}`)
  }

  /** Returns undefined if the key that sealed the tokens is not in use any more. */
  #open({ sealed }: GrantRecord, key: string): UserTokens | undefined {
    const keyring = this.keyring()
    if (keyring === undefined) throw unavailable('the key that seals grants has not arrived')
    const plain = keyring.open(sealed, `grant ${key}`)
    return plain === undefined ? undefined : (JSON.parse(plain.toString()) as UserTokens)
  }
}

const grantedOf = ({ accessToken, key }: UserTokens): GrantedToken => ({
  value: accessToken,
  key: key && ProofKey.read(key),
})
