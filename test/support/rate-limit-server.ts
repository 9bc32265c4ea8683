import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '../../proto/gen/called/rate_limit_pb.ts'
import { startUnaryService } from './unary-service.ts'

export type RateLimitServer = Awaited<ReturnType<typeof startRateLimitServer>>

/** A rate limit service over gRPC that admits every request by default. */
export function startRateLimitServer() {
  return startUnaryService({
    path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    request: RateLimitRequestSchema,
    response: RateLimitResponseSchema,
    keep: (request) => request,
    first: { overallCode: 1 },
  })
}
