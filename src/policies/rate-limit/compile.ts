import type { References } from '../../model/references.ts'
import type { Compiled } from '../define.ts'
import type { GlobalDescriptor, LocalLimit, RateLimitConfig } from './config.ts'
import type { RateLimitSpec } from './schema.ts'

/** A server that cannot be reached refuses what the policy covers, as one that fails does. */
export function compile(
  { local = [], global }: RateLimitSpec,
  references: References,
): Compiled<RateLimitConfig> {
  const limits = local.map(localLimit)
  if (global === undefined) return { config: { local: limits }, problems: [] }
  const target = references.backend(global.backendRef)
  if (typeof target === 'string' || target.type === 'invalid') {
    const message = typeof target === 'string' ? target : target.message
    return { problems: [{ path: 'global.backendRef', message }] }
  }
  const { domain } = global
  const descriptors = global.descriptors.map(descriptor)
  return { config: { local: limits, global: { target, domain, descriptors } }, problems: [] }
}

type LocalSpec = NonNullable<RateLimitSpec['local']>[number]
type DescriptorSpec = NonNullable<RateLimitSpec['global']>['descriptors'][number]

function localLimit({ requests, tokens, unit, burst = 0 }: LocalSpec): LocalLimit {
  const counts = tokens === undefined ? 'requests' : 'tokens'
  return { counts, rate: requests ?? tokens ?? 1, unit, burst }
}

function descriptor({ entries, unit = 'Requests' }: DescriptorSpec): GlobalDescriptor {
  return {
    counts: unit === 'Tokens' ? 'tokens' : 'requests',
    entries: entries.map(({ name, expression }) => ({ name, expression })),
  }
}
