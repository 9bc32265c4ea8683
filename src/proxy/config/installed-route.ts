/** A route rule that is in force, and where its entries are. */
import type { ResourceKey } from '../../model/resources.ts'
import type { EntryIds, PortTable } from './port-table.ts'
import type { CompiledRule } from './rules.ts'

/** The entries of a route rule on one listener. */
interface InstalledEntries {
  readonly listener: ResourceKey
  readonly table: PortTable
  readonly ids: EntryIds
}

export interface InstalledRoute {
  readonly rule: CompiledRule
  /** Not a Map: most rules are on one listener, and there may be tens of thousands of rules. */
  entries: readonly InstalledEntries[]
}

/** Of a rule that no listener serves. */
export const nowhere: readonly InstalledEntries[] = []

/** Is a rule served on a listener? */
export const isOn = ({ entries }: InstalledRoute, listener: ResourceKey): boolean =>
  entries.some((entry) => entry.listener === listener)

/** Notes that a rule is served on one more listener. */
export function enter(route: InstalledRoute, entries: InstalledEntries): void {
  route.entries = route.entries.length === 0 ? [entries] : [...route.entries, entries]
}

/** Takes a rule off a listener, or off all of them. */
export function leave(route: InstalledRoute, listener?: ResourceKey): void {
  const leaving = (entry: InstalledEntries) => (listener ?? entry.listener) === entry.listener
  for (const { table, ids } of route.entries.filter(leaving)) table.remove(ids)
  route.entries = listener === undefined ? nowhere : route.entries.filter((one) => !leaving(one))
}
