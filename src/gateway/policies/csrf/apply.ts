import { type Infer, list, record, text } from '../../../ground/base/shape.ts'
import {
  type Exchange,
  next,
  type RespondVerdict,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { isSameHost, originText, parseOrigin } from '../../../ground/model/origin.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Origins are `scheme://host:port` in lower case with an explicit port. */
const shape = record({ additionalOrigins: list(text) })

/** Safe methods (RFC 9110 section 9.2.1) except TRACE. */
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

const refused = (detail: string): RespondVerdict => ({
  kind: 'respond',
  status: 403,
  headers: [['content-type', 'text/plain']],
  body: 'CSRF validation failed',
  reason: 'DirectResponse',
  detail,
})
const foreignSite = refused('Sec-Fetch-Site names another site, and Origin is not listed')
const foreignOrigin = refused('Origin is neither the destination nor listed')

const apply: PolicyApply<Infer<typeof shape>> = {
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
    /** If a header occurs several times, each of its values must allow the request. */
    const judge = ({ method, authority, headers }: Exchange['request']): Verdict => {
      if (safeMethods.has(method)) return next
      const sites = headers.getAll('sec-fetch-site')
      const origins = headers.getAll('origin')
      if (sites.length > 0) {
        // Browsers set Sec-Fetch-Site themselves; scripts cannot change it.
        if (sites.every((site) => site === 'same-origin' || site === 'none')) return next
        return origins.length > 0 && origins.every(isListed) ? next : foreignSite
      }
      // Without both headers, the client is no browser, or an old browser with a same-origin request.
      const isHome = (origin: string) => isOwn(origin, authority) || isListed(origin)
      return origins.every(isHome) ? next : foreignOrigin
    }
    return {
      onRequest: ({ request }) => judge(request),
    }
  },
}

export default apply
