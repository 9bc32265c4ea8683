import { GrowingBytes } from '../../ground/base/growing-bytes.ts'
import type { Expiring } from './renewed.ts'

/** A bearer token (RFC 6749 5.1). */
export interface AccessToken extends Expiring {
  readonly token: string
  /** Further headers that calls with this token need. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Finds a credential. Resolves to undefined if not configured; rejects if configured but not usable. */
export type CredentialSource<Found> = (env: Environment) => Promise<Found | undefined>

export type TokenSource = CredentialSource<AccessToken>

/** Returns what the first configured source finds; later sources would belong to another identity. */
export async function firstFound<Found>(
  sources: readonly CredentialSource<Found>[],
  env: Environment,
): Promise<Found | undefined> {
  for (const source of sources) {
    const found = await source(env)
    if (found !== undefined) return found
  }
  return undefined
}

/** Time limit for a metadata service at its default address; on most machines there is no such service. */
export const metadataWaitMs = 1_000

/** Resolves to undefined if the lookup fails, unless the address of the metadata service is configured. */
export async function orAbsent<Found>(
  isConfigured: boolean,
  lookup: Promise<Found>,
): Promise<Found | undefined> {
  try {
    return await lookup
  } catch (error) {
    if (isConfigured) throw error
    return undefined
  }
}

/** Time limit for the answer of a credential service. */
const defaultWaitMs = 5_000
/** Maximum size of a response of a credential service, in bytes. */
const maxBytes = 65_536

/** A credential service has refused a request. */
export class ServiceRefusal extends Error {
  readonly status: number

  constructor(service: string, status: number) {
    super(`${service} answered ${status}`)
    this.status = status
  }
}

/** Returns the body of a successful response; rejects otherwise. Error messages never contain the body. */
export async function fetchText(
  service: string,
  url: string,
  init: RequestInit = {},
  waitMs = defaultWaitMs,
): Promise<string> {
  const signal = AbortSignal.timeout(waitMs)
  const response = await fetch(url, { redirect: 'error', signal, ...init }).catch((cause) => {
    throw new Error(`${service} cannot be reached`, { cause })
  })
  const text = await readText(service, response)
  if (!response.ok) throw new ServiceRefusal(service, response.status)
  return text
}

/** Reads the body of a response; throws once it exceeds `maxBytes`. */
async function readText(service: string, { body }: Response): Promise<string> {
  const bytes = new GrowingBytes()
  for await (const piece of body ?? []) {
    if (bytes.length + piece.length > maxBytes) throw new Error(`${service} answered too much`)
    bytes.add(piece, 0, piece.length)
  }
  return bytes.content.toString('utf8')
}

/** The fields of a JSON object; empty if the text is anything else. */
export function readFields(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Requests a token from a token service. Error messages never contain the response. */
export async function fetchToken(
  service: string,
  url: string,
  init: RequestInit = {},
  waitMs = defaultWaitMs,
): Promise<AccessToken> {
  const text = await fetchText(service, url, init, waitMs)
  const { access_token: token, expires_in: lifetime, expires_on: time } = readFields(text)
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new Error(`${service} answered without a token`)
  }
  // Some clouds send the lifetime (`expires_in`), others the time of expiry (`expires_on`), in seconds.
  if (Number(lifetime) > 0) return { token, expiresAt: Date.now() + Number(lifetime) * 1_000 }
  return Number(time) > 0 ? { token, expiresAt: Number(time) * 1_000 } : { token }
}

/** Parses a time to milliseconds since the epoch; undefined if the text is not a valid time. */
export function parseTime(text: unknown): number | undefined {
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
