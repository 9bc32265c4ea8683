/** Responses to `initialize` of legacy servers that give no session ids, by client. */

import { now } from '../../../../proxy/upstream/choose.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { InitializedSession } from './begin-session.ts'

/** How long a response is used. */
const keptMs = 5 * 60_000
/** Maximum number of clients of a target. */
const maxClients = 256

interface Kept {
  readonly begun: InitializedSession
  readonly until: number
}

const all = new WeakMap<McpTargetEntry, Map<string, Kept>>()

/** Returns the response for this client; `client` is a digest of everything that its server may tell it by. */
export function initialized(entry: McpTargetEntry, client: string): InitializedSession | undefined {
  const found = all.get(entry)?.get(client)
  return found !== undefined && found.until > now() ? found.begun : undefined
}

export function keepInitialized(
  entry: McpTargetEntry,
  client: string,
  begun: InitializedSession,
): void {
  const ofEntry = all.get(entry) ?? new Map<string, Kept>()
  const [oldest] = ofEntry.size >= maxClients ? ofEntry.keys() : []
  if (oldest !== undefined) ofEntry.delete(oldest)
  all.set(entry, ofEntry.set(client, { begun, until: now() + keptMs }))
}
