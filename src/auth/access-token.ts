import { fetchText, patienceMs, readFields } from './fetch-text.ts'
import type { Expiring } from './renewed.ts'

/** A bearer token (RFC 6749 5.1). */
export interface AccessToken extends Expiring {
  readonly token: string
  /** Further headers that calls with it need. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Undefined where the place is not configured; rejects where it is and gives nothing usable. */
export type TokenSource = (env: Environment) => Promise<AccessToken | undefined>

/** The first place that is configured decides: falling through would speak as somebody else. */
export async function firstToken(
  sources: readonly TokenSource[],
  env: Environment,
): Promise<AccessToken | undefined> {
  for (const source of sources) {
    const found = await source(env)
    if (found !== undefined) return found
  }
  return undefined
}

/** Asks a token service. Messages never hold what it answered. */
export async function fetchToken(
  what: string,
  url: string,
  init: RequestInit = {},
  waitMs = patienceMs,
): Promise<AccessToken> {
  return tokenOf(what, await fetchText(what, url, init, waitMs))
}

/** `expires_in` counts seconds, `expires_on` is a time; services of clouds know one or the other. */
function tokenOf(what: string, text: string): AccessToken {
  const { access_token: token, expires_in: within, expires_on: on } = readFields(text)
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new Error(`${what} answered without a token`)
  }
  const seconds = Number(within)
  const time = Number(on)
  if (within !== undefined && seconds > 0) {
    return { token, expiresAt: Date.now() + seconds * 1_000 }
  }
  return on !== undefined && time > 0 ? { token, expiresAt: time * 1_000 } : { token }
}
