/** Requests for tokens (RFC 6749 section 3.2), which the gateway forwards with its own redirect URI. */
import type { Exchange, Verdict } from '../../../../ground/exchange/exchange.ts'
import {
  forwardedHeaders,
  forwardedResponse,
  jsonObject,
  readBody,
  unreachable,
} from './forwarding.ts'
import { endpointIn, type KnownIssuer } from './issuer-metadata.ts'
import type { GatewayServer } from './oauth-metadata.ts'
import { isRedirectUri, redirectKeyOf } from './redirects.ts'
import { oauthError } from './responses.ts'

/**
 * Forwards the request. A redirect URI is replaced by the callback that stands for it, as in the request for
 * authorization; everything else, such as the verifier of PKCE, passes unchanged.
 */
export async function requestToken(
  issuer: KnownIssuer,
  server: GatewayServer,
  exchange: Exchange,
): Promise<Verdict> {
  const url = endpointIn(issuer.metadata, 'token_endpoint')
  if (url === undefined) return noEndpoint
  if (
    !/^application\/x-www-form-urlencoded\b/i.test(
      exchange.request.headers.get('content-type') ?? '',
    )
  ) {
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
  const body = withCallback(sent, form, server)
  if (body === undefined) return oauthError(400, 'invalid_request', 'redirect_uri is invalid')
  const headers = forwardedHeaders(exchange)
  const response = await issuer.send(url, { method: 'POST', headers, body })
  return response === undefined ? unreachable : forwardedResponse(response)
}

function withCallback(
  sent: Uint8Array,
  form: URLSearchParams,
  server: GatewayServer,
): Uint8Array | undefined {
  const [redirect, ...more] = form.getAll('redirect_uri')
  if (redirect === undefined) return sent
  if (more.length > 0 || !isRedirectUri(redirect)) return undefined
  form.set('redirect_uri', server.callback(redirectKeyOf(redirect)))
  return Buffer.from(form.toString())
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
