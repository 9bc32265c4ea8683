/** TRACE and OPTIONS that go so many hops and no further (RFC 9110 7.6.2). */
import type { RespondVerdict } from '../exchange/exchange.ts'
import { originalOf, type RequestContext } from './request/request-context.ts'

const countPattern = /^\s*([0-9]+)\s*$/
/** Larger counts are lowered to this. */
const mostForwards = 2 ** 31 - 1
const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE'

/** Parts of names whose values a TRACE must not show (RFC 9110 9.3.8), however they are spelled. */
const sensitive =
  /auth|cookie|cred|token|secret|key|passw|session|sign|cert|jwt|saml|assertion|identity|csrf|xsrf/i

/** Counts one hop; answers in the place of the backend if there is none left. */
export function limitForwards(context: RequestContext): RespondVerdict | undefined {
  const { request } = context.exchange
  const { method } = request
  if (method !== 'OPTIONS' && method !== 'TRACE') return undefined
  const count = fewestForwards(request.headers.getAll('max-forwards'))
  if (count === undefined) return undefined
  if (count > 0) {
    request.headers.set('max-forwards', `${Math.min(count - 1, mostForwards)}`)
    return undefined
  }
  if (method === 'OPTIONS') return answer([['allow', methods]], '')
  return answer([['content-type', 'message/http']], echo(context))
}

function answer(headers: [string, string][], body: string): RespondVerdict {
  return { kind: 'respond', status: 200, headers, body, reason: 'DirectResponse' }
}

/** Of several counts the lowest one holds; what is no count is not looked at. */
function fewestForwards(values: readonly string[]): number | undefined {
  const counts = values
    .flatMap((value) => value.split(','))
    .flatMap((value) => countPattern.exec(value)?.[1] ?? [])
    .map(Number)
  return counts.length === 0 ? undefined : Math.min(...counts)
}

/** The request as it came, without what could be a credential. */
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
