/** Tokens of Microsoft Entra and Google for backends of every kind. */
import type { AccessToken } from '../../engines/auth/access-token.ts'
import { entraTokens } from '../../engines/auth/entra/default-token.ts'
import { applicationDefault, tokensOfFile } from '../../engines/auth/google/application-default.ts'
import type { Renewed } from '../../engines/auth/renewed.ts'
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import {
  type Exchange,
  next,
  type SecretValues,
  type Verdict,
} from '../../ground/exchange/exchange.ts'
import type { AzureConfig, GcpConfig } from './config.ts'

/** Maximum number of hosts for which ID tokens are kept. */
const maxAudiences = 64

/** Adds the token of a cloud. */
type CloudStep = (exchange: Exchange) => Verdict | Promise<Verdict>

/** Throws if a secret has not arrived. */
export function azureStep(
  { resource, secret, managedIdentity, workloadIdentity }: AzureConfig,
  secrets: SecretValues,
): CloudStep {
  const textOf = (digest: string) => Buffer.from(secrets.value(digest)).toString().trim()
  const tokens = entraTokens(
    resource,
    secret
      ? {
          type: 'secret',
          clientId: textOf(secret.clientId),
          tenantId: textOf(secret.tenantId),
          clientSecret: textOf(secret.clientSecret),
        }
      : managedIdentity
        ? { type: 'managedIdentity', identity: managedIdentity }
        : workloadIdentity && { type: 'workloadIdentity' },
  )
  return (exchange) => addToken(exchange, tokens)
}

/** Throws if a secret has not arrived. */
export function gcpStep(config: GcpConfig, secrets: SecretValues): CloudStep {
  const { idToken, file, audience } = config
  const text = file === undefined ? undefined : Buffer.from(secrets.value(file)).toString()
  const source = (wanted: { readonly audience: string } | 'accessToken') =>
    text === undefined
      ? applicationDefault(process.env, wanted)
      : tokensOfFile(text, 'credentials.json', wanted)
  if (!idToken || audience !== undefined) {
    const tokens = source(audience === undefined ? 'accessToken' : { audience })
    return (exchange) => addToken(exchange, tokens)
  }
  const byHost = new BoundedMap<string, Renewed<AccessToken>>(maxAudiences)
  return (exchange) => {
    const [host = ''] = exchange.request.authority.toLowerCase().split(':')
    let tokens = byHost.get(host)
    if (tokens === undefined) {
      tokens = source({ audience: `https://${host}` })
      byHost.set(host, tokens)
    }
    return addToken(exchange, tokens)
  }
}

function addToken(exchange: Exchange, tokens: Renewed<AccessToken>): Verdict | Promise<Verdict> {
  const add = (found: AccessToken | undefined): Verdict => {
    if (found === undefined) throw missing()
    const { headers } = exchange.request
    headers.set('authorization', `Bearer ${found.token}`)
    for (const [name, value] of found.headers ?? []) headers.set(name, value)
    return next
  }
  const found = tokens.get()
  if (!(found instanceof Promise)) return add(found)
  return found.then(add, (cause: unknown) => {
    const message = cause instanceof Error ? cause.message : 'unknown'
    throw new GatewayError('credentials_unavailable', message, cause)
  })
}

function missing(): GatewayError {
  const why = 'the environment has no credentials of the cloud that backend.auth names'
  return new GatewayError('credentials_failed', why)
}
