/**
 * Credentials of the cloud that the gateway runs in, for vendors whose backends have no `auth`.
 * A signature is valid for one host only, so it may be sent to any. A token could be reused by its
 * receiver, so it is sent only to hosts of its vendor and to this machine.
 */
import type { AccessToken } from '../../../auth/access-token.ts'
import type { Renewed } from '../../../auth/renewed.ts'
import { type Exchange, next, type Verdict } from '../../../exchange/exchange.ts'
import { signingPlace } from '../../../policies/backend-simple/auth/apply.ts'
import {
  look,
  prepareDefaults,
  signWithDefaults,
  withValue,
} from '../../../policies/backend-simple/auth/default-credentials.ts'
import type { Step } from '../../../policies/define.ts'

export interface DefaultCredentials {
  readonly step: Step
  /** Begins to look for them, so that the first request need not wait. */
  prepare(): void
}

/**
 * Credentials for requests to a host; undefined if they may not go there. `isOwnHost`: the vendor's,
 * which refuses requests without credentials.
 */
export type CloudCredentials = (host: string, isOwnHost: boolean) => DefaultCredentials | undefined

interface CloudTokens {
  /** Called once for the whole process: tokens belong to it, not to a backend. */
  readonly source: () => Renewed<AccessToken>
  /** Domains whose hosts may see a token. */
  readonly domains: readonly string[]
  /** Why a request without a token fails. */
  readonly missing: string
}

/** Bearer tokens. */
export function cloudTokens({ source, domains, missing }: CloudTokens): CloudCredentials {
  let made: Renewed<AccessToken> | undefined
  const tokens = () => {
    made ??= source()
    return made
  }
  return (host, isOwnHost) => {
    const name = host.toLowerCase()
    if (!loopback.test(name) && !domains.some((domain) => isWithin(name, domain))) return undefined
    const onRequest = (exchange: Exchange) =>
      withValue(tokens().get(), isOwnHost ? missing : undefined, (found) => send(exchange, found))
    return { step: { onRequest }, prepare: () => look(tokens()) }
  }
}

/** AWS Signature Version 4. */
export const cloudSignature: CloudCredentials = (_host, isOwnHost) => {
  const onRequest = (exchange: Exchange) =>
    signWithDefaults(exchange, signingPlace, isOwnHost ? 'required' : 'optional')
  return { step: { onRequest }, prepare: prepareDefaults }
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|::1)$/

const isWithin = (host: string, domain: string): boolean =>
  host === domain || host.endsWith(`.${domain}`)

function send(
  { request: { headers } }: Exchange,
  { token, headers: more = [] }: AccessToken,
): Verdict {
  headers.set('authorization', `Bearer ${token}`)
  for (const [name, value] of more) headers.set(name, value)
  return next
}
