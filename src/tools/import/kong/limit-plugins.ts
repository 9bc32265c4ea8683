/** Converts Kong's plugins that limit requests. */
import type { SourceField } from '../field.ts'
import { limitOf, reportShared } from '../limits.ts'
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

function reportScope(config: SourceField): void {
  config.ignore(...counting, 'header_name', 'path')
  const by = config.text('limit_by') ?? config.text('identifier') ?? 'consumer'
  if (by === 'service' || by === 'route') return
  reportShared(config, `Kong counts by ${by}`)
}

function addLimit(field: SourceField, amount: number, seconds: number, scene: PluginScene): void {
  const limit = limitOf({ amount, seconds }, field)
  if (limit !== undefined) scene.plan.limits.push(limit)
  else field.report('protection', 'the limit has a period that cannot be converted')
}

function rateLimiting(config: SourceField, scene: PluginScene): void {
  reportScope(config)
  for (const [period, seconds] of Object.entries(periods)) {
    const field = config.get(period)
    const amount = field.number()
    if (amount !== undefined) addLimit(field, amount, seconds, scene)
  }
}

function rateLimitingAdvanced(config: SourceField, scene: PluginScene): void {
  reportScope(config)
  const windows = config.items('window_size')
  config.items('limit').forEach((field, index) => {
    addLimit(field, field.number() ?? 0, windows[index]?.number() ?? 0, scene)
  })
}

export const limitPlugins: Readonly<Record<string, PluginReader>> = {
  'rate-limiting': rateLimiting,
  'rate-limiting-advanced': rateLimitingAdvanced,
}
