/** The services of this worker for which users can allow access, by the address of their page. */
import { watchRevocations } from './revocations.ts'
import type { UserGrants } from './user-grants.ts'

/** Maximum number of services, or of versions of a policy, that share an address. */
const maxVersions = 16

const byAddress = new Map<string, readonly UserGrants[]>()

/**
 * A policy that is bound again replaces itself. Policies with the same address by mistake, or by intent of another owner,
 * do not see each other's links, because these are sealed for one service.
 */
export function registerGrants(grants: UserGrants): void {
  const { redirectURI } = grants.config
  const others = grantsAt(redirectURI).filter(({ id }) => id !== grants.id)
  byAddress.set(redirectURI, [grants, ...others].slice(0, maxVersions))
  watchRevocations(find)
}

function find(client: string): UserGrants | undefined {
  for (const versions of byAddress.values()) {
    const found = versions.find(({ id }) => id === client)
    if (found !== undefined) return found
  }
  return undefined
}

export const grantsAt = (address: string): readonly UserGrants[] => byAddress.get(address) ?? []
