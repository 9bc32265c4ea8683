/** Responses of the gateway itself about authorization. Scripts of any origin may read them. */
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'

type Pair = readonly [name: string, value: string]

const json: Pair = ['content-type', 'application/json']
const anyOrigin: Pair = ['access-control-allow-origin', '*']
/** Includes `mcp-protocol-version`, which scripts send and which needs a preflight request. */
const allowedHeaders: Pair = [
  'access-control-allow-headers',
  'authorization, content-type, mcp-protocol-version',
]

export function jsonResponse(
  status: number,
  body: unknown,
  reason: string,
  headers: readonly Pair[] = [],
  detail?: string,
): RespondVerdict {
  return {
    kind: 'respond',
    status,
    headers: [json, ...headers],
    body: JSON.stringify(body),
    reason,
    ...(detail && { detail }),
  }
}

export function metadataResponse(document: unknown): RespondVerdict {
  return jsonResponse(200, document, 'DirectResponse', corsHeaders('GET'))
}

/** An OAuth error response (RFC 6749 section 5.2). */
export function oauthError(
  status: number,
  error: string,
  description: string,
  headers: readonly Pair[] = [],
): RespondVerdict {
  const reason = status >= 500 ? 'UpstreamFailure' : 'InvalidRequest'
  const body = { error, error_description: description }
  return jsonResponse(status, body, reason, [...headers, ...corsHeaders('GET')], description)
}

/** The response to a CORS preflight request (Fetch standard, section 3.2). */
export function preflight(method: 'GET' | 'POST'): RespondVerdict {
  return { kind: 'respond', status: 204, headers: corsHeaders(method), reason: 'DirectResponse' }
}

export function wrongMethod(method: 'GET' | 'POST'): RespondVerdict {
  const headers = [['allow', `${method}, OPTIONS`] as const, ...corsHeaders(method)]
  return { kind: 'respond', status: 405, headers, reason: 'InvalidRequest' }
}

/** Headers that allow scripts of any origin to read a response. */
export function corsHeaders(method: 'GET' | 'POST'): readonly Pair[] {
  const methods: Pair = ['access-control-allow-methods', `${method}, OPTIONS`]
  return [anyOrigin, methods, allowedHeaders]
}
