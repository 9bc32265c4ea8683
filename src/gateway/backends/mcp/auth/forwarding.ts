/** Requests of clients that the gateway forwards to endpoints of the provider. */
import { isObject, type JsonObject } from '../../../../ground/base/json-object.ts'
import type {
  Exchange,
  HttpCalloutResponse,
  RespondVerdict,
} from '../../../../ground/exchange/exchange.ts'
import { corsHeaders, oauthError } from './responses.ts'

/** Maximum size of a request for a registration or a token. */
const maxBodyBytes = 64 * 1024

/** Resolves to the body of a request, or to a refusal with this error code if it is too large. */
export async function readBody(
  { requestBody }: Exchange,
  error: string,
): Promise<Uint8Array | RespondVerdict> {
  const body = await requestBody.buffer(maxBodyBytes)
  if (body.complete) return body.bytes
  return oauthError(413, error, `the body has more than ${maxBodyBytes} bytes`)
}

/** `authorization` may carry a client secret, or an initial access token (RFC 7591 section 3). */
const requestHeaders = ['content-type', 'accept', 'authorization']

export function forwardedHeaders({ request }: Exchange): (readonly [string, string])[] {
  return requestHeaders.flatMap((name) => {
    const value = request.headers.get(name)
    return value === undefined ? [] : [[name, value] as const]
  })
}

const responseHeaders = new Set(['content-type', 'retry-after', 'www-authenticate'])

/** Forwards a response, with this body if given. It contains secrets, so caches must not store it. */
export function forwardedResponse(
  { status, headers, body }: HttpCalloutResponse,
  changed?: string,
): RespondVerdict {
  const kept = headers.filter(([name]) => responseHeaders.has(name.toLowerCase()))
  const hasType = kept.some(([name]) => name.toLowerCase() === 'content-type')
  const type = hasType ? [] : [['content-type', 'application/json'] as const]
  return {
    kind: 'respond',
    status,
    headers: [...type, ...kept, ['cache-control', 'no-store'], ...corsHeaders('POST')],
    body: changed ?? body,
    reason: 'DirectResponse',
  }
}

export const unreachable = oauthError(502, 'server_error', 'the issuer cannot be reached')

/** Parses a JSON object; undefined if the bytes are anything else. */
export function jsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
