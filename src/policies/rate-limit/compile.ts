import type { Compiled } from '../define.ts'
import type { LocalLimit, RateLimitConfig } from './config.ts'
import type { RateLimitSpec } from './schema.ts'

export function compile({ local = [], global }: RateLimitSpec): Compiled<RateLimitConfig> {
  if (global !== undefined) {
    const message = 'is not supported yet; the traffic it covers is refused'
    return { problems: [{ path: 'global', message }] }
  }
  return { config: { local: local.map(localLimit) }, problems: [] }
}

type LocalSpec = NonNullable<RateLimitSpec['local']>[number]

function localLimit({ requests, tokens, unit, burst = 0 }: LocalSpec): LocalLimit {
  return {
    counts: tokens === undefined ? 'requests' : 'tokens',
    rate: requests ?? tokens ?? 1,
    unit,
    burst,
  }
}
