import { randomUUID } from 'node:crypto'
import type { Exchange, SecretValues, Verdict } from '../../../ground/exchange/exchange.ts'
import { revealLiterals } from '../../../ground/model/inline-secrets.ts'
import type { PolicyApply } from '../define.ts'
import type { Authorizer } from './authorizer.ts'
import { CallerReader } from './caller.ts'
import type { RequestStamps } from './check-request.ts'
import { type ExtAuthConfig, type HttpAuthorization, shape } from './config.ts'
import { GrpcAuthorizer } from './grpc.ts'
import { HttpAuthorizer } from './http.ts'

/** Numbers the policies, so that those of both phases store their changes under different keys. */
let policies = 0

const stamps: RequestStamps = {
  epochMs: (startedAt) => Math.round(performance.timeOrigin + startedAt),
  uniqueId: randomUUID,
}

const apply: PolicyApply<ExtAuthConfig> = {
  shape,
  bind(config, callouts, secrets) {
    const { http, grpc } = config
    if (grpc !== undefined) {
      const extension = `extAuth.${policies++}`
      const authorizer = new GrpcAuthorizer(config, grpc, callouts, extension, stamps)
      const { allowedRequestHeaders: allowed } = grpc
      const sent = allowed && new Set(allowed)
      return {
        onRequest: (exchange: Exchange) => ask(authorizer, exchange, sent),
        onResponse: (exchange: Exchange) => authorizer.changeResponse(exchange),
      }
    }
    if (http === undefined) throw new Error('extAuth says neither HTTP nor gRPC')
    const authorizer = new HttpAuthorizer(config, revealed(http, secrets), callouts)
    const sent = new Set(['authorization', ...http.allowedRequestHeaders])
    return { onRequest: (exchange: Exchange) => ask(authorizer, exchange, sent) }
  },
}

export default apply

/** Returns the settings with the literals that are secrets. Throws if one has not arrived. */
function revealed(http: HttpAuthorization, secrets: SecretValues): HttpAuthorization {
  if (http.digests === undefined) return http
  const added = Object.entries(http.addRequestHeaders).map(([name, expression]) => [
    name,
    revealLiterals(expression, http.digests, secrets),
  ])
  return { ...http, addRequestHeaders: Object.fromEntries(added) }
}

/** Calls the service, and records the identity of the caller if the request is allowed. */
async function ask(
  authorizer: Authorizer,
  exchange: Exchange,
  sent: ReadonlySet<string> | undefined,
): Promise<Verdict> {
  const caller = new CallerReader(exchange, sent)
  const verdict = await authorizer.authorize(exchange)
  const { learned, isOver } = exchange
  if (verdict.kind === 'next' && !isOver) {
    learned.authorizedCaller = caller.read(exchange, learned.authorizedCaller)
  }
  return verdict
}
