/**
 * Credentials of the cloud that the gateway runs in, for backends without `auth`. A signature is
 * valid for one host only, so signed requests may be sent to any host. A token could be reused by its
 * receiver, so it is sent only to hosts of its vendor and to this machine.
 */
import type { AccessToken } from '../../../../engines/auth/access-token.ts'
import type { Renewed } from '../../../../engines/auth/renewed.ts'
import { type Exchange, next, type Verdict } from '../../../../ground/exchange/exchange.ts'
import { signingContext } from '../../../policies/backend-simple/auth/apply.ts'
import {
  prefetch,
  prepareDefaults,
  signWithDefaults,
  withValue,
} from '../../../policies/backend-simple/auth/default-credentials.ts'
import type { Step } from '../../../policies/define.ts'

export interface DefaultCredentials {
  readonly step: Step
  /** Fetches the credentials in advance, so that the first request does not wait. */
  prepare(): void
}

/**
 * Returns the credentials for requests to a host, or undefined if the host must not get any.
 * `isOwnHost` is true if the host is the vendor's, which rejects requests without credentials.
 */
export type CloudCredentials = (host: string, isOwnHost: boolean) => DefaultCredentials | undefined

interface CloudTokens {
  /** Called once per process, because all backends share its tokens. */
  readonly source: () => Renewed<AccessToken>
  /** Domains to whose hosts a token may be sent. */
  readonly domains: readonly string[]
  /** Error message of a request to the vendor if there is no token. */
  readonly missing: string
}

/** Credentials that send a bearer token. */
export function cloudTokens({ source, domains, missing }: CloudTokens): CloudCredentials {
  let made: Renewed<AccessToken> | undefined
  const tokens = () => (made ??= source())
  return (host, isOwnHost) => {
    const name = host.toLowerCase()
    if (!loopback.test(name) && !domains.some((domain) => isWithin(name, domain))) return undefined
    const onRequest = (exchange: Exchange) =>
      withValue(tokens().get(), isOwnHost ? missing : undefined, (found) =>
        addToken(exchange, found),
      )
    return { step: { onRequest }, prepare: () => prefetch(tokens()) }
  }
}

/** Credentials that sign requests with AWS Signature Version 4. */
export const cloudSignature: CloudCredentials = (_host, isOwnHost) => {
  const onRequest = (exchange: Exchange) =>
    signWithDefaults(exchange, signingContext, isOwnHost ? 'required' : 'optional')
  return { step: { onRequest }, prepare: prepareDefaults }
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|::1)$/

const isWithin = (host: string, domain: string): boolean =>
  host === domain || host.endsWith(`.${domain}`)

function addToken(
  { request: { headers } }: Exchange,
  { token, headers: more = [] }: AccessToken,
): Verdict {
  headers.set('authorization', `Bearer ${token}`)
  for (const [name, value] of more) headers.set(name, value)
  return next
}
