/** Converts Kong's plugins that limit requests. */
import type { SourceField } from '../field.ts'
import { byAddress, byHeader, limitOf, reportShared } from '../limits.ts'
import type { PluginReader, PluginScene } from './plugin.ts'

const periods = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  month: 2_592_000,
  year: 31_536_000,
}

/** Settings of Kong's counters without a counterpart: in Sluice, each proxy counts separately. */
const counting = [
  'policy',
  'redis',
  'redis_host',
  'redis_port',
  'redis_password',
  'redis_database',
  'fault_tolerant',
  'hide_client_headers',
  'error_code',
  'error_message',
  'sync_rate',
  'namespace',
  'strategy',
  'window_type',
  'dictionary_name',
]

/** The client in the sense of Kong: the consumer, otherwise the address. */
const byConsumer = [
  'apiKey != null ? apiKey.username',
  'basicAuth != null ? basicAuth.username',
  'jwt != null ? jwt.iss',
  byAddress,
].join(' : ')

/** Returns the key by which a plugin counts; undefined if all requests share a limit. */
export function keyOf(config: SourceField): string | undefined {
  config.ignore(...counting, 'path')
  const by = config.text('limit_by') ?? config.text('identifier') ?? 'consumer'
  const header = config.text('header_name')
  if (by === 'ip') return byAddress
  if (by === 'header' && header !== undefined) return byHeader(header)
  if (by === 'consumer' || by === 'credential') {
    config.report(
      'changed',
      'a consumer with several user names or token issuers has a limit for each',
    )
    return byConsumer
  }
  if (by !== 'service' && by !== 'route') reportShared(config, `Kong counts by ${by}`)
  return undefined
}

interface KongLimit {
  readonly amount: number
  readonly seconds: number
  readonly key: string | undefined
}

function addLimit(field: SourceField, kongLimit: KongLimit, scene: PluginScene): void {
  const limit = limitOf(kongLimit, field)
  if (limit !== undefined) scene.plan.limits.push(limit)
  else field.report('protection', 'the limit has a period that cannot be converted')
}

function rateLimiting(config: SourceField, scene: PluginScene): void {
  const key = keyOf(config)
  for (const [period, seconds] of Object.entries(periods)) {
    const field = config.get(period)
    const amount = field.number()
    if (amount !== undefined) addLimit(field, { amount, seconds, key }, scene)
  }
}

function rateLimitingAdvanced(config: SourceField, scene: PluginScene): void {
  const key = keyOf(config)
  const windows = config.items('window_size')
  config.items('limit').forEach((field, index) => {
    const [amount, seconds] = [field.number() ?? 0, windows[index]?.number() ?? 0]
    addLimit(field, { amount, seconds, key }, scene)
  })
}

export const limitPlugins: Readonly<Record<string, PluginReader>> = {
  'rate-limiting': rateLimiting,
  'rate-limiting-advanced': rateLimitingAdvanced,
}
