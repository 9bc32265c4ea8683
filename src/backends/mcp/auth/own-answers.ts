/** What the gateway itself tells clients that look for authorization. Scripts of any origin may read it. */
import type { RespondVerdict } from '../../../exchange/exchange.ts'

type Pair = readonly [name: string, value: string]

const json: Pair = ['content-type', 'application/json']
const anyOrigin: Pair = ['access-control-allow-origin', '*']
/** Clients send the version of the protocol along, which browsers ask about first. */
const allowedHeaders: Pair = [
  'access-control-allow-headers',
  'authorization, content-type, mcp-protocol-version',
]

export function jsonAnswer(
  status: number,
  body: unknown,
  reason: string,
  headers: readonly Pair[] = [],
): RespondVerdict {
  return {
    kind: 'respond',
    status,
    headers: [json, ...headers],
    body: JSON.stringify(body),
    reason,
  }
}

/** A document that is found. */
export function metadataAnswer(document: unknown): RespondVerdict {
  return jsonAnswer(200, document, 'DirectResponse', sharing('GET'))
}

/** An error of OAuth (RFC 6749 section 5.2). */
export function failureAnswer(
  status: number,
  error: string,
  description: string,
  headers: readonly Pair[] = [],
): RespondVerdict {
  const reason = status >= 500 ? 'UpstreamFailure' : 'InvalidRequest'
  const body = { error, error_description: description }
  return jsonAnswer(status, body, reason, [...headers, ...sharing('GET')])
}

/** CORS as the Fetch standard has it (section 3.2). */
export function preflight(method: 'GET' | 'POST'): RespondVerdict {
  return { kind: 'respond', status: 204, headers: sharing(method), reason: 'DirectResponse' }
}

export function wrongMethod(method: 'GET' | 'POST'): RespondVerdict {
  const headers = [['allow', `${method}, OPTIONS`] as const, ...sharing(method)]
  return { kind: 'respond', status: 405, headers, reason: 'InvalidRequest' }
}

/** Headers by which scripts of any origin may read an answer. */
export function sharing(method: 'GET' | 'POST'): readonly Pair[] {
  const methods: Pair = ['access-control-allow-methods', `${method}, OPTIONS`]
  return [anyOrigin, methods, allowedHeaders]
}
