/** Converts BackendTrafficPolicy. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { byAddress, limitOf } from '../limits.ts'
import { enter, targetsOf } from './targets.ts'

export function convertBackendTrafficPolicy(field: SourceField, result: Conversion): void {
  const name = enter(field, result)
  const spec = field.get('spec')
  const refs = targetsOf(spec)
  const request = spec.at('timeout', 'http', 'requestTimeout').text()
  const isRoute = refs.every(({ kind }) => kind === 'HTTPRoute')
  if (request !== undefined && !isRoute) {
    spec.at('timeout', 'http', 'requestTimeout').report('lost', 'applies to HTTPRoutes only')
  }
  const traffic = {
    rateLimit: rateLimitOf(spec.get('rateLimit')),
    retry: retryOf(spec.get('retry')),
    timeouts: request === undefined || !isRoute ? undefined : { request },
  }
  const connect = spec.at('timeout', 'tcp', 'connectTimeout').text()
  const keepalive = spec.get('tcpKeepalive')
  const tcp = compact({
    connectTimeout: connect,
    keepalive: keepalive.isSet ? keepaliveOf(keepalive) : undefined,
  })
  const backend = { tcp: filled(tcp) }
  if (refs.length > 0) result.policy(`${name}-traffic`, refs, { traffic, backend }, field)
}

export function keepaliveOf(keepalive: SourceField): Fields {
  return compact({
    retries: keepalive.number('probes'),
    time: keepalive.text('idleTime'),
    interval: keepalive.text('interval'),
  })
}

const seconds: Readonly<Record<string, number>> = {
  Second: 1,
  Minute: 60,
  Hour: 3600,
  Day: 86_400,
  Month: 2_592_000,
  Year: 31_536_000,
}

/** Rules without selectors become local limits. */
function rateLimitOf(rateLimit: SourceField): Fields | undefined {
  if (!rateLimit.isSet) return undefined
  rateLimit.ignore('type')
  const rules = [
    ...rateLimit.at('global', 'rules').items(),
    ...rateLimit.at('local', 'rules').items(),
  ]
  if (rateLimit.has('global')) {
    rateLimit.get('global').report('looser', 'each proxy keeps its own limit')
  }
  const local = rules.flatMap((rule) => {
    rule.ignore('shared', 'xRateLimitHeaders')
    const amount = rule.at('limit', 'requests').number() ?? 0
    const period = seconds[rule.at('limit', 'unit').text() ?? ''] ?? 0
    const isTokens = rule.at('cost', 'response', 'from').text() === 'Metadata'
    const selectors = rule.items('clientSelectors')
    const unit = isTokens ? 'tokens' : 'requests'
    const isForAll = selectors.every(isDistinct)
    const key = keyOf(selectors)
    const limit = isForAll ? limitOf({ amount, seconds: period, unit, key }, rule) : undefined
    rule.take()
    if (limit === undefined) {
      rule.report('protection', 'limits for some requests need a route rule of their own')
      return []
    }
    if (key?.includes('request.headers')) {
      rule.report('stricter', 'requests without the header share a limit')
    }
    return [limit]
  })
  return local.length > 0 ? { local } : undefined
}

/** Returns the key that divides requests like the selectors; undefined if there are none. */
export function keyOf(selectors: readonly SourceField[]): string | undefined {
  const keys = selectors.flatMap((selector) => [
    ...(selector.has('sourceCIDR') ? [byAddress] : []),
    ...selector.items('headers').map((header) => {
      return `request.headers[${JSON.stringify(header.text('name')?.toLowerCase() ?? '')}]`
    }),
  ])
  return keys.length === 0 ? undefined : keys.join(' + "|" + ')
}

/** Whether the selector only divides clients, so that each has a limit of its own. */
export function isDistinct(selector: SourceField): boolean {
  const headers = selector.items('headers')
  const others = selector.entries().filter(([name]) => name !== 'headers' && name !== 'sourceCIDR')
  const isDistinctSource =
    !selector.has('sourceCIDR') || selector.at('sourceCIDR', 'type').text() === 'Distinct'
  return (
    others.length === 0 &&
    isDistinctSource &&
    headers.every((header) => header.text('type') === 'Distinct')
  )
}

/** Statuses for triggers of Envoy; connection failures are always retried. */
const triggers: Readonly<Record<string, readonly number[]>> = {
  '5xx': [500, 501, 502, 503, 504],
  'gateway-error': [502, 503, 504],
  'retriable-4xx': [409],
}

function retryOf(retry: SourceField): Fields | undefined {
  if (!retry.isSet) return undefined
  const on = retry.get('retryOn')
  const codes = new Set([
    ...on.texts('triggers').flatMap((trigger) => entryOf(triggers, trigger) ?? []),
    ...on.items('httpStatusCodes').flatMap((code) => code.number() ?? []),
  ])
  retry.at('perRetry', 'backOff').ignore('maxInterval')
  return compact({
    attempts: retry.number('numRetries') ?? 2,
    codes: codes.size > 0 ? [...codes].sort() : undefined,
    backoff: retry.at('perRetry', 'backOff', 'baseInterval').text(),
  })
}
