import { randomUUID } from 'node:crypto'
import type { Callouts, Exchange, SecretValues } from '../../../ground/exchange/exchange.ts'
import { revealLiterals } from '../../../ground/model/inline-secrets.ts'
import type { PolicyApply } from '../define.ts'
import { Authorization } from './authorization.ts'
import type { RequestStamps } from './check-request.ts'
import { type ExtAuthConfig, type HttpAuthorization, shape } from './config.ts'
import { GrpcAuthorizer } from './grpc.ts'
import { HttpAuthorizer } from './http.ts'
import type { Clock } from './verdict-cache.ts'

/** Numbers the policies, so that those of both phases store their changes under different keys. */
let policies = 0

const stamps: RequestStamps = {
  epochMs: (startedAt) => Math.round(performance.timeOrigin + startedAt),
  uniqueId: randomUUID,
}

const clock: Clock = { monotonicMs: () => performance.now(), epochMs: () => Date.now() }

const apply: PolicyApply<ExtAuthConfig> = {
  shape,
  bind(config, callouts, secrets) {
    const extension = `extAuth.${policies++}`
    const authorization = authorizationOf(config, callouts, secrets, extension)
    return {
      onRequest: (exchange: Exchange) => authorization.decide(exchange),
      ...(mayChangeResponse(config) && {
        onResponse: (exchange: Exchange) => authorization.changeResponse(exchange),
      }),
    }
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

function authorizationOf(
  config: ExtAuthConfig,
  callouts: Callouts,
  secrets: SecretValues,
  extension: string,
) {
  const { http, grpc } = config
  if (grpc !== undefined) {
    const authorizer = new GrpcAuthorizer(config, grpc, callouts, stamps)
    const sent = grpc.allowedRequestHeaders && new Set(grpc.allowedRequestHeaders)
    return new Authorization(config, authorizer, sent, extension, clock)
  }
  if (http === undefined) throw new Error('the extAuth policy has neither http nor grpc')
  const authorizer = new HttpAuthorizer(config, revealed(http, secrets), callouts)
  const sent = new Set(['authorization', ...http.allowedRequestHeaders])
  return new Authorization(config, authorizer, sent, extension, clock)
}

const mayChangeResponse = ({ grpc, http }: ExtAuthConfig): boolean =>
  grpc !== undefined || (http?.allowedClientHeadersOnSuccess ?? []).length > 0
