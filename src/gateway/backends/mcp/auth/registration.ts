/**
 * Registration of clients (RFC 7591) through the gateway. The provider gets the redirect URIs of the client,
 * so that its own rules apply to them, and the callbacks of the gateway that stand for them.
 */
import type { JsonObject } from '../../../../ground/base/json-object.ts'
import type { Exchange, Verdict } from '../../../../ground/exchange/exchange.ts'
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
import { type AcceptedCallbacks, acceptedKey, isRedirectUri, redirectKeyOf } from './redirects.ts'
import { corsHeaders, jsonResponse, oauthError } from './responses.ts'

/** Most redirect URIs of one client; each one is registered twice. */
const maxRedirects = 32

/** Forwards a registration. Remembers in `accepted` which callbacks the provider has registered. */
export async function registerClient(
  config: McpSignInConfig,
  issuer: KnownIssuer,
  server: GatewayServer,
  accepted: AcceptedCallbacks,
  exchange: Exchange,
): Promise<Verdict> {
  const url = registrationEndpoint(config, issuer.metadata)
  if (url === undefined && config.clientId === undefined) {
    return oauthError(404, 'not_found', 'the issuer has no registration endpoint')
  }
  const body = await readBody(exchange, 'invalid_client_metadata')
  if ('kind' in body) return body
  const asked = jsonObject(body)
  if (asked === undefined) {
    return oauthError(400, 'invalid_client_metadata', 'the body is not a JSON object')
  }
  const redirects = redirectsWithCallbacks(asked.redirect_uris, server)
  if (typeof redirects === 'string') return oauthError(400, 'invalid_redirect_uri', redirects)
  if (config.clientId !== undefined || url === undefined) return fixedClient(config.clientId, asked)
  const response = await issuer.send(url, {
    method: 'POST',
    headers: forwardedHeaders(exchange),
    body: Buffer.from(JSON.stringify({ ...asked, ...redirects })),
  })
  if (response === undefined) return unreachable
  const registered = jsonObject(response.body)
  if (!Array.isArray(registered?.redirect_uris)) return forwardedResponse(response)
  const { client_id, redirect_uris } = registered
  if (response.status < 300 && typeof client_id === 'string') {
    for (const uri of redirect_uris)
      if (server.isCallback(uri)) accepted.set(acceptedKey(client_id, uri), true)
  }
  // Clients compare the URIs with their own.
  const own = redirect_uris.filter((uri) => !server.isCallback(uri))
  return forwardedResponse(response, JSON.stringify({ ...registered, redirect_uris: own }))
}

/** Returns where the provider registers clients; undefined if it is not known to register any. */
export function registrationEndpoint(
  { issuer = '', provider }: McpSignInConfig,
  metadata: JsonObject,
): URL | undefined {
  return (
    adaptationOf(provider).registration?.(issuer) ?? endpointIn(metadata, 'registration_endpoint')
  )
}

/**
 * Answers a registration with the client id of the policy. The client gets no secret: the gateway adds it to requests
 * for tokens. The provider decides which redirect URIs may be used, when the client signs in.
 */
function fixedClient(clientId: string | undefined, asked: JsonObject): Verdict {
  const { client_secret: _, jwks: _keys, jwks_uri: _uri, software_statement: _s, ...kept } = asked
  const client = { ...kept, client_id: clientId, token_endpoint_auth_method: 'none' }
  const headers = [['cache-control', 'no-store'] as const, ...corsHeaders('POST')]
  return jsonResponse(201, client, 'DirectResponse', headers)
}

/** Adds the callbacks. Clients of grants without a browser have no redirect URIs. Returns a message on errors. */
function redirectsWithCallbacks(
  uris: unknown,
  server: GatewayServer,
): { readonly redirect_uris?: readonly string[] } | string {
  if (uris === undefined) return {}
  if (!Array.isArray(uris)) return 'redirect_uris is not an array'
  if (uris.length > maxRedirects) return `redirect_uris has more than ${maxRedirects} entries`
  if (!uris.every((uri) => isRedirectUri(uri) && !server.isCallback(uri))) {
    return 'a redirect URI is invalid, has an unsafe scheme, or is a callback of the gateway'
  }
  const callbacks = uris.map((uri) => server.callback(redirectKeyOf(uri)))
  return { redirect_uris: [...new Set([...uris, ...callbacks])] }
}
