/**
 * Credentials of the cloud that the gateway runs in, for vendors whose backends have no `auth`.
 * Signatures hold for one host and may go anywhere; a token can be used by whoever sees it, so it goes
 * to hosts of its vendor and to this machine alone.
 */
import type { AccessToken } from '../../../auth/access-token.ts'
import { entraDefault } from '../../../auth/entra/default-token.ts'
import { applicationDefault } from '../../../auth/google/application-default.ts'
import type { Renewed } from '../../../auth/renewed.ts'
import { type Exchange, next, type Verdict } from '../../../exchange/exchange.ts'
import type { Vendor } from '../../../model/model-providers.ts'
import { signingPlace } from '../../../policies/backend-simple/auth/apply.ts'
import {
  look,
  prepareDefaults,
  signWithDefaults,
  withValue,
} from '../../../policies/backend-simple/auth/default-credentials.ts'
import type { Step } from '../../../policies/define.ts'

/** One of each for the whole process: they belong to it, not to a backend. */
function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => {
    made ??= make()
    return made
  }
}

const google = once(() => applicationDefault())
const entra = once(() => entraDefault())

interface CloudTokens {
  readonly tokens: () => Renewed<AccessToken>
  /** Domains whose hosts may see a token. */
  readonly domains: readonly string[]
  /** What is missing where there is none. */
  readonly missing: string
}

const clouds: Readonly<Partial<Record<Vendor, CloudTokens>>> = {
  vendorB: {
    tokens: entra,
    domains: [
      'openai.azure.com',
      'cognitiveservices.azure.com',
      'services.ai.azure.com',
      'openai.azure.us',
      'cognitiveservices.azure.us',
      'openai.azure.cn',
      'cognitiveservices.azure.cn',
    ],
    missing:
      'no Entra token: neither a client secret, nor a workload identity, nor a managed identity is there',
  },
  vendorE: {
    tokens: google,
    domains: ['googleapis.com'],
    missing:
      'no application default credentials: neither GOOGLE_APPLICATION_CREDENTIALS, nor the file of gcloud, nor a metadata server has any',
  },
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|::1)$/

const isWithin = (host: string, domain: string): boolean =>
  host === domain || host.endsWith(`.${domain}`)

export interface DefaultCredentials {
  readonly step: Step
  /** Begins to look for them, so that the first request need not wait. */
  prepare(): void
}

/**
 * For requests to a host; undefined for vendors that have keys of their own, and for hosts that no
 * token may go to. `isOwnHost`: the vendor's, which nobody reaches without credentials.
 */
export function defaultCredentials(
  vendor: Vendor,
  host: string,
  isOwnHost: boolean,
): DefaultCredentials | undefined {
  if (vendor === 'vendorF') {
    const onRequest = (exchange: Exchange) =>
      signWithDefaults(exchange, signingPlace, isOwnHost ? 'required' : 'optional')
    return { step: { onRequest }, prepare: prepareDefaults }
  }
  const cloud = clouds[vendor]
  if (cloud === undefined) return undefined
  const { tokens, domains, missing } = cloud
  const name = host.toLowerCase()
  if (!loopback.test(name) && !domains.some((domain) => isWithin(name, domain))) return undefined
  const onRequest = (exchange: Exchange) =>
    withValue(tokens().get(), isOwnHost ? missing : undefined, (found) => send(exchange, found))
  return { step: { onRequest }, prepare: () => look(tokens()) }
}

function send(
  { request: { headers } }: Exchange,
  { token, headers: more = [] }: AccessToken,
): Verdict {
  headers.set('authorization', `Bearer ${token}`)
  for (const [name, value] of more) headers.set(name, value)
  return next
}
