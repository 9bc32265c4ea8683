import { backendLevels } from '../../../policies/merge.ts'
import { targetRef } from '../../../proxy/config/placement.ts'
import type { ConfigStore } from '../../../proxy/config/store.ts'
import type { ModelBackend } from './model-providers.ts'

/** What routes and Gateways say of credentials is not asked: to look for some too many is harmless. */
export function warmCredentials({ groups }: ModelBackend, { policies }: ConfigStore): void {
  for (const { credentials, named, part } of groups.flat()) {
    if (credentials === undefined) continue
    const levels = backendLevels([], { backend: targetRef(named), sections: part.sections })
    const { connection } = policies.merge('backend', 'PostRouting', levels)
    if (connection.credentials === undefined) credentials.prepare()
  }
}
