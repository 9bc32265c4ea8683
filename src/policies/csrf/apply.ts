import { list, record, type Shape, text } from '../../base/shape.ts'
import { type Exchange, next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import { isSameHost, originText, parseOrigin } from '../../model/origin.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. */
export interface CsrfConfig {
  /** `scheme://host:port`, lower case, with the port always written. */
  readonly additionalOrigins: readonly string[]
}

const shape: Shape<CsrfConfig> = record({ additionalOrigins: list(text) })

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
  shape,
  bind({ additionalOrigins }) {
    const listed = new Set(additionalOrigins)
    const isListed = (header: string): boolean => {
      const origin = parseOrigin(header)
      return origin !== undefined && listed.has(originText(origin))
    }
    const isOwn = (header: string, authority: string): boolean => {
      const origin = parseOrigin(header)
      return origin !== undefined && isSameHost(origin, authority)
    }
    /** Of several lines nobody knows which one counts: each must allow. */
    const isAllowed = ({ method, authority, headers }: Exchange['request']): boolean => {
      if (safeMethods.has(method)) return true
      const sites = headers.getAll('sec-fetch-site')
      const origins = headers.getAll('origin')
      if (sites.length > 0) {
        // Said by the browser itself, which no page can change.
        if (sites.every((site) => site === 'same-origin' || site === 'none')) return true
        return origins.length > 0 && origins.every(isListed)
      }
      // Neither header: not a browser, or the same origin in an old one.
      return origins.every((origin) => isOwn(origin, authority) || isListed(origin))
    }
    return {
      onRequest: ({ request }): Verdict => (isAllowed(request) ? next : refused),
    }
  },
}

export default apply
