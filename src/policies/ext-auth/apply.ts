import { randomUUID } from 'node:crypto'
import type { Exchange } from '../../exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'
import type { Surroundings } from './check-request.ts'
import type { ExtAuthConfig } from './config.ts'
import { GrpcAuthorizer } from './grpc.ts'
import { HttpAuthorizer } from './http.ts'

/** Each policy keeps its changes under a key of its own: two phases may ask two services. */
let policies = 0

const surroundings: Surroundings = {
  epochMs: (startedAt) => Math.round(performance.timeOrigin + startedAt),
  newId: randomUUID,
}

const apply: PolicyApply<ExtAuthConfig> = {
  bind(config, callouts) {
    const { http, grpc } = config
    if (grpc !== undefined) {
      const fact = `extAuth.${policies++}`
      const authorizer = new GrpcAuthorizer(config, grpc, callouts, fact, surroundings)
      return {
        onRequest: (exchange: Exchange) => authorizer.authorize(exchange),
        onResponse: (exchange: Exchange) => authorizer.changeResponse(exchange),
      }
    }
    if (http === undefined) throw new Error('extAuth says neither HTTP nor gRPC')
    const authorizer = new HttpAuthorizer(config, http, callouts)
    return { onRequest: (exchange: Exchange) => authorizer.authorize(exchange) }
  },
}

export default apply
