/** What all kinds of traffic share. */
import type { Random } from '../../fuzz/support/random.ts'
import type { TaggedClients } from '../../support/tagged-client.ts'
import type { Accounts } from '../accounts.ts'
import type { Ledger } from '../ledger.ts'
import type { Servers } from '../servers.ts'

export interface TrafficContext {
  readonly ledger: Ledger
  readonly accounts: Accounts
  readonly servers: Servers
  readonly random: Random
  readonly clients: TaggedClients
}

/** Sends one exchange, or a few that belong together. */
export type Traffic = (context: TrafficContext) => Promise<void>

export interface Entrance {
  readonly port: number
  /** What a request passes before the gateway, for faults. */
  readonly ways: readonly string[]
}

/** Most requests go to the gateway itself, the others to a proxy in front of it. */
export function entranceOf({ servers, random }: TrafficContext): Entrance {
  const fronts = [...servers.fronts]
  if (fronts.length === 0 || !random.oneIn(3)) return { port: servers.gateway, ways: ['gateway'] }
  const [name, port] = random.pick(fronts)
  return { port, ways: ['gateway', `${name}-front`] }
}
