import { randomUUID } from 'node:crypto'
import type { Exchange, Verdict } from '../../exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'
import { CallerReader } from './caller.ts'
import type { Surroundings } from './check-request.ts'
import { type ExtAuthConfig, shape } from './config.ts'
import { GrpcAuthorizer } from './grpc.ts'
import { HttpAuthorizer } from './http.ts'

/** Each policy keeps its changes under a key of its own: two phases may ask two services. */
let policies = 0

const surroundings: Surroundings = {
  epochMs: (startedAt) => Math.round(performance.timeOrigin + startedAt),
  newId: randomUUID,
}

const apply: PolicyApply<ExtAuthConfig> = {
  shape,
  bind(config, callouts) {
    const { http, grpc } = config
    if (grpc !== undefined) {
      const fact = `extAuth.${policies++}`
      const authorizer = new GrpcAuthorizer(config, grpc, callouts, fact, surroundings)
      const { allowedRequestHeaders: allowed } = grpc
      const sent = allowed && new Set(allowed)
      return {
        onRequest: (exchange: Exchange) => ask(authorizer, exchange, sent),
        onResponse: (exchange: Exchange) => authorizer.changeResponse(exchange),
      }
    }
    if (http === undefined) throw new Error('extAuth says neither HTTP nor gRPC')
    const authorizer = new HttpAuthorizer(config, http, callouts)
    const sent = new Set(['authorization', ...http.allowedRequestHeaders])
    return { onRequest: (exchange: Exchange) => ask(authorizer, exchange, sent) }
  },
}

export default apply

interface Authorizer {
  authorize(exchange: Exchange): Promise<Verdict>
}

/** Asks the service, and remembers whom it has let pass. */
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
