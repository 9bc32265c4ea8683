/** Requests for tokens (RFC 6749 section 3.2), which the gateway forwards with its own redirect URI. */
import type { JsonObject } from '../../../../ground/base/json-object.ts'
import type {
  Exchange,
  HttpCalloutResponse,
  Verdict,
} from '../../../../ground/exchange/exchange.ts'
import type { McpSignInConfig } from './config.ts'
import {
  forwardedHeaders,
  forwardedResponse,
  jsonObject,
  readBody,
  unreachable,
} from './forwarding.ts'
import { endpointIn, type KnownIssuer } from './issuer-metadata.ts'
import type { GatewayServer } from './oauth-metadata.ts'
import { adaptationOf } from './providers.ts'
import { isRedirectUri, redirectKeyOf } from './redirects.ts'
import { oauthError } from './responses.ts'

/**
 * Forwards the request. A redirect URI is replaced by the callback that stands for it, as in the request for
 * authorization, and what the provider needs is adapted. Everything else, such as the verifier of PKCE, passes
 * unchanged. `secret` is that of the client id of the policy.
 */
export async function requestToken(
  config: McpSignInConfig,
  issuer: KnownIssuer,
  server: GatewayServer,
  exchange: Exchange,
  secret: string | undefined,
): Promise<Verdict> {
  const url = endpointIn(issuer.metadata, 'token_endpoint')
  if (url === undefined) return noEndpoint
  const type = exchange.request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\b/i.test(type)) {
    return oauthError(400, 'invalid_request', 'the body is not form-encoded')
  }
  const sent = await readBody(exchange, 'invalid_request')
  if ('kind' in sent) return sent
  const form = new URLSearchParams(new TextDecoder().decode(sent))
  const misdirected = ['client_assertion', 'assertion'].some((name) =>
    form.getAll(name).some((assertion) => isForGateway(assertion, server)),
  )
  if (misdirected) {
    const advice = `the assertion names the gateway as its audience; sign it for ${issuer.metadata.issuer}`
    return oauthError(400, 'invalid_client', advice)
  }
  const redirects = form.getAll('redirect_uri')
  const [redirect] = redirects
  if (redirects.length > 1 || (redirect !== undefined && !isRedirectUri(redirect))) {
    return oauthError(400, 'invalid_request', 'redirect_uri is invalid')
  }
  if (redirect !== undefined) form.set('redirect_uri', server.callback(redirectKeyOf(redirect)))
  const adaptation = adaptationOf(config.provider)
  if (adaptation.refusesResource) form.delete('resource')
  const headers = forwardedHeaders(exchange)
  if (secret !== undefined && isOfFixedClient(config, form, exchange)) {
    if (form.get('grant_type') === 'authorization_code' && !form.has('code_verifier')) {
      return oauthError(400, 'invalid_request', 'code_verifier is required')
    }
    addSecret(issuer.metadata, form, headers, secret)
  }
  const body = Buffer.from(form.toString())
  const response = await issuer.send(url, { method: 'POST', headers, body })
  if (response === undefined) return unreachable
  return adaptation.hasOpaqueTokens ? withIdToken(response) : forwardedResponse(response)
}

/** Grants that a user has allowed. With others, everyone could get tokens of the client itself. */
const grantsOfUsers = ['authorization_code', 'refresh_token']

/** Whether the request is of the client id of the policy, and has no secret. */
function isOfFixedClient(
  { clientId }: McpSignInConfig,
  form: URLSearchParams,
  { request }: Exchange,
): boolean {
  const [grant, client] = [form.getAll('grant_type'), form.getAll('client_id')]
  if (grant.length !== 1 || client.length !== 1 || client[0] !== clientId) return false
  if (!grantsOfUsers.includes(grant[0] ?? '')) return false
  return (
    !request.headers.has('authorization') &&
    !form.has('client_secret') &&
    !form.has('client_assertion')
  )
}

/** Adds the secret in the way that the provider announces (RFC 6749 section 2.3.1). */
function addSecret(
  metadata: JsonObject,
  form: URLSearchParams,
  headers: (readonly [string, string])[],
  secret: string,
): void {
  const methods: unknown = metadata.token_endpoint_auth_methods_supported
  if (!Array.isArray(methods) || methods.includes('client_secret_post')) {
    form.set('client_secret', secret)
    return
  }
  const [id, text] = [form.get('client_id') ?? '', secret].map(formEncoded)
  headers.push(['authorization', `Basic ${Buffer.from(`${id}:${text}`).toString('base64')}`])
}

const formEncoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1)

/** Replaces an opaque access token by the ID token, which the gateway can verify. */
function withIdToken(response: HttpCalloutResponse): Verdict {
  if (response.status !== 200) return forwardedResponse(response)
  const tokens = jsonObject(response.body)
  if (typeof tokens?.id_token !== 'string') {
    return oauthError(502, 'server_error', 'the provider sent no ID token')
  }
  const changed = { ...tokens, access_token: tokens.id_token }
  return forwardedResponse(response, JSON.stringify(changed))
}

/** Whether a signed assertion (RFC 7523) is for the gateway, which cannot verify it. */
function isForGateway(assertion: string, server: GatewayServer): boolean {
  const [, payload = ''] = assertion.split('.', 2)
  const audience = jsonObject(Buffer.from(payload, 'base64url'))?.aud
  const own: readonly unknown[] = [server.issuer, server.endpoint('token')]
  return Array.isArray(audience)
    ? audience.some((one) => own.includes(one))
    : own.includes(audience)
}

const noEndpoint = oauthError(500, 'server_error', 'the issuer has no token endpoint')
