/** Looks for default credentials when a backend that needs them comes, not when it is first called. */
import type { DesiredDelta } from '../../model/resources.ts'
import { backendLevels } from '../../policies/merge.ts'
import { targetRef } from '../config/placement.ts'
import type { ConfigStore } from '../config/store.ts'

/** What routes and Gateways say of credentials is not asked: to look for none too many is harmless. */
export function warmCredentials({ upserted }: DesiredDelta, config: ConfigStore): void {
  for (const { resource } of upserted) {
    if (resource.type !== 'backend' || resource.destination.type !== 'ai') continue
    const found = config.backends.find(`${resource.namespace}/${resource.name}`)
    if (found?.type !== 'ai') continue
    for (const { credentials, named, part } of found.groups.flat()) {
      if (credentials === undefined) continue
      const place = { backend: targetRef(named), sections: part.sections }
      const levels = backendLevels([], place)
      const { connection } = config.policies.merge('backend', 'PostRouting', levels)
      if (connection.hasCredentials !== true) credentials.prepare()
    }
  }
}
