import { type Exchange, next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import { isSameHost, originText, parseOrigin } from '../../model/origin.ts'
import type { PolicyApply } from '../define.ts'
import type { CsrfConfig } from './config.ts'

/** Methods that change nothing (RFC 9110 section 9.2.1); TRACE is left to the upstream's mercy. */
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

const refused: RespondVerdict = {
  kind: 'respond',
  status: 403,
  headers: [['content-type', 'text/plain']],
  body: 'CSRF validation failed',
  reason: 'DirectResponse',
}

const apply: PolicyApply<CsrfConfig> = {
  bind({ additionalOrigins }) {
    const listed = new Set(additionalOrigins)
    const isListed = (header: string | undefined): boolean => {
      const origin = header === undefined ? undefined : parseOrigin(header)
      return origin !== undefined && listed.has(originText(origin))
    }
    const isAllowed = ({ method, authority, headers }: Exchange['request']): boolean => {
      if (safeMethods.has(method)) return true
      const site = headers.get('sec-fetch-site')
      const origin = headers.get('origin')
      if (site !== undefined) {
        // Said by the browser itself, which no page can change.
        return site === 'same-origin' || site === 'none' || isListed(origin)
      }
      // Neither header: not a browser, or the same origin in an old one.
      if (origin === undefined) return true
      const parsed = parseOrigin(origin)
      return parsed !== undefined && (isSameHost(parsed, authority) || isListed(origin))
    }
    return {
      onRequest: ({ request }): Verdict => (isAllowed(request) ? next : refused),
    }
  },
}

export default apply
