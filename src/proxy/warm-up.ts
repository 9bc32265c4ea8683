/** What a new backend needs is looked for when it comes, not when it is first called. */
import { isIP } from 'node:net'
import { bareHost } from '../base/bare-host.ts'
import type { BackendResource, DesiredDelta, Destination } from '../model/resources.ts'
import { backendLevels } from '../policies/merge.ts'
import { targetRef } from './config/placement.ts'
import type { ConfigStore } from './config/store.ts'
import type { HostResolver } from './upstream/host-resolver.ts'

/** Addresses of names, and credentials of the cloud. */
export function warmUp(
  { upserted }: DesiredDelta,
  config: ConfigStore,
  hosts: Pick<HostResolver, 'warm'>,
): void {
  for (const { resource } of upserted) {
    if (resource.type !== 'backend') continue
    const { destination } = resource
    if (destination.type === 'ai') warmCredentials(resource, config)
    for (const host of hostsOf(destination)) if (isIP(bareHost(host)) === 0) hosts.warm(host)
  }
}

function hostsOf(destination: Destination): readonly string[] {
  if (destination.type === 'static') return [destination.host]
  if (destination.type !== 'mcp') return []
  return destination.targets.flatMap(({ destination: one }) =>
    one.type === 'static' ? [one.host] : [],
  )
}

/** What routes and Gateways say of credentials is not asked: to look for some too many is harmless. */
function warmCredentials({ namespace, name }: BackendResource, config: ConfigStore): void {
  const found = config.backends.find(`${namespace}/${name}`)
  if (found?.type !== 'ai') return
  for (const { credentials, named, part } of found.groups.flat()) {
    if (credentials === undefined) continue
    const place = { backend: targetRef(named), sections: part.sections }
    const levels = backendLevels([], place)
    const { connection } = config.policies.merge('backend', 'PostRouting', levels)
    if (connection.credentials === undefined) credentials.prepare()
  }
}
