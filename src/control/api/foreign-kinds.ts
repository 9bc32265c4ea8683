/** What to do with kinds that are not read, but that users of a gateway may expect to have an effect. */
import { nearest } from '../../ground/base/suggest.ts'
import { ownGroup } from '../../ground/model/api-names.ts'
import { kinds } from './kinds.ts'

/** Groups of other gateways, and the source that `sluice import` reads them as. */
const sources: Readonly<Record<string, string>> = {
  'agentgateway.dev': 'agentgateway',
  'gateway.envoyproxy.io': 'envoy-gateway',
  'aigateway.envoyproxy.io': 'envoy-gateway',
}

const groups = [...new Set(kinds.map(({ group }) => group))].filter((group) => group.includes('.'))

/**
 * Advice for an object that is not read; undefined if nothing suggests that it was meant for this gateway. It
 * may have a kind of another gateway, a kind of ours in another group, or a misspelt group.
 */
export function foreignAdvice(group: string, kind: string): string | undefined {
  const source = Object.hasOwn(sources, group) ? sources[group] : undefined
  if (source !== undefined) return `sluice import --from ${source} converts it`
  const named = kinds.filter((row) => row.kind === kind && row.group.includes('.'))
  const own = named.find((row) => row.group === ownGroup)
  const meant = nearest(group, groups)
  const row = own ?? named.find((candidate) => candidate.group === meant)
  if (row === undefined || row.group === group) return undefined
  return `did you mean apiVersion: ${row.group}/${row.versions[0]}?`
}
