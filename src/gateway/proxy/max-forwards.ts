/** Handles Max-Forwards of TRACE and OPTIONS (RFC 9110 7.6.2). */
import type { RespondVerdict } from '../../ground/exchange/exchange.ts'
import { originalOf, type RequestContext } from './request/request-context.ts'

const countPattern = /^\s*([0-9]+)\s*$/
/** Maximum count. Larger counts are lowered to it. */
const maxCount = 2 ** 31 - 1
const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE'

/** Matches names of headers and parameters whose values a TRACE response must not have (RFC 9110 9.3.8). */
const sensitive =
  /auth|cookie|cred|token|secret|key|passw|session|sign|cert|jwt|saml|assertion|identity|csrf|xsrf/i

/** Decrements the count. If it is already 0, responds in place of the backend. */
export function limitForwards(context: RequestContext): RespondVerdict | undefined {
  const { request } = context.exchange
  const { method } = request
  if (method !== 'OPTIONS' && method !== 'TRACE') return undefined
  const count = lowestCount(request.headers.getAll('max-forwards'))
  if (count === undefined) return undefined
  if (count > 0) {
    request.headers.set('max-forwards', `${Math.min(count - 1, maxCount)}`)
    return undefined
  }
  if (method === 'OPTIONS') return respond([['allow', methods]], '')
  return respond([['content-type', 'message/http']], echo(context))
}

function respond(headers: [string, string][], body: string): RespondVerdict {
  return { kind: 'respond', status: 200, headers, body, reason: 'DirectResponse' }
}

/** Returns the lowest of several counts. Invalid counts are ignored. */
function lowestCount(values: readonly string[]): number | undefined {
  const counts = values
    .flatMap((value) => value.split(','))
    .flatMap((value) => countPattern.exec(value)?.[1] ?? [])
    .map(Number)
  return counts.length === 0 ? undefined : Math.min(...counts)
}

/** Returns the request as received, without possible credentials. */
function echo(context: RequestContext): string {
  const { method, host, path } = context.original ?? originalOf(context.exchange)
  const [bare = '', query] = path.split('?')
  const target = query === undefined || sensitive.test(query) ? bare : path
  const lines = [`${method} ${target} HTTP/1.1`, `host: ${host}`]
  for (const [name, value] of context.exchange.request.headers.entries()) {
    if (!sensitive.test(name)) lines.push(`${name}: ${value}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}
