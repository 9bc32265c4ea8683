/** Where a client puts a credential: finds it there, and removes it before the request goes to a backend. */
import {
  ambiguous,
  type Credentials,
  credentialsOf,
  none,
  schemeCredentialsOf,
} from '../../engines/auth/authorization-header.ts'
import { cookiePairs } from '../../ground/base/cookie-pairs.ts'
import { changeQuery } from '../../ground/base/query-string.ts'
import { type Infer, optional, record, text } from '../../ground/base/shape.ts'
import type { Exchange, RequestHead } from '../../ground/exchange/exchange.ts'
import { Expression, textOfResult } from '../variables/index.ts'

/** The compiled form. One member is set. */
export const locationShape = record({
  /** `name` is in lower case. */
  header: optional(record({ name: text, prefix: optional(text) })),
  queryParameter: optional(record({ name: text })),
  cookie: optional(record({ name: text })),
  expression: optional(text),
})
export type LocationConfig = Infer<typeof locationShape>

export interface CredentialLocation {
  /** Several different values are ambiguous, because a backend might choose another one. */
  find(exchange: Exchange): Credentials
  /** Removes what `find` has found. */
  remove(request: RequestHead): void
}

/** `Authorization: Bearer TOKEN` (RFC 6750 section 2.1), or another scheme. */
const authorizationHeader = (scheme: 'bearer' | 'basic'): CredentialLocation => ({
  find: ({ request }) => credentialsOf(request.headers, scheme),
  remove: ({ headers }) => headers.remove('authorization'),
})

/** Returns the place of a configuration; without one, the Authorization header with a scheme in lower case. */
export function locationOf(
  config: LocationConfig | undefined,
  scheme: 'bearer' | 'basic' = 'bearer',
): CredentialLocation {
  if (config === undefined) return authorizationHeader(scheme)
  const { header, queryParameter, cookie, expression } = config
  if (header !== undefined) return inHeader(header.name, header.prefix)
  if (queryParameter !== undefined) return inQuery(queryParameter.name)
  if (cookie !== undefined) return inCookie(cookie.name)
  return byExpression(expression ?? '')
}

function inHeader(name: string, prefix = ''): CredentialLocation {
  const scheme = prefix.endsWith(' ') ? prefix.trim().toLowerCase() : undefined
  return {
    find({ request: { headers } }) {
      if (scheme !== undefined) return schemeCredentialsOf(headers, name, scheme)
      const value = headers.lines(name)
      if (value === undefined) return none
      if (typeof value !== 'string') return ambiguous
      return value.startsWith(prefix) ? value.slice(prefix.length).trim() || none : none
    },
    remove: ({ headers }) => headers.remove(name),
  }
}

function only(values: readonly string[]): Credentials {
  const [first, ...others] = values
  if (first === undefined || (first === '' && others.length === 0)) return none
  return others.length === 0 ? first : ambiguous
}

function inQuery(name: string): CredentialLocation {
  return {
    find({ request: { query } }) {
      if (query === undefined) return none
      const values: string[] = []
      changeQuery(query, (parameter, found, value) => {
        if (found === name) values.push(value)
        return parameter
      })
      return only(values)
    },
    remove(request) {
      const { query } = request
      if (query === undefined) return
      request.query = changeQuery(query, (parameter, found) =>
        found === name ? undefined : parameter,
      )
    },
  }
}

function inCookie(name: string): CredentialLocation {
  const pairsOf = ({ headers }: RequestHead) => [...cookiePairs(headers.getAll('cookie'))]
  return {
    find({ request }) {
      if (!request.headers.has('cookie')) return none
      return only(
        pairsOf(request).flatMap((pair) => (pair.name === name ? (pair.value ?? []) : [])),
      )
    },
    remove(request) {
      const kept = pairsOf(request).filter((pair) => pair.name !== name || pair.value === undefined)
      if (kept.length === 0) request.headers.remove('cookie')
      else request.headers.set('cookie', kept.map(({ text: sent }) => sent).join('; '))
    },
  }
}

/** An expression that fails, or gives no text, finds nothing. */
function byExpression(source: string): CredentialLocation {
  const expression = new Expression(source)
  return {
    find: (exchange) => textOfResult(expression.evaluate(exchange)) || none,
    remove: () => undefined,
  }
}
