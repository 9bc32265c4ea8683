/**
 * Revokes the tokens of removed grants at their services (RFC 7009). A removal only queues a revocation in the store,
 * because commands cannot open the tokens. Any worker of a proxy that has the policy may carry it out.
 */
import { type GrantRecord, kindOfKey, type StoredGrant } from '../../ground/model/grants.ts'
import { TokenError } from '../credentials/token-error.ts'
import { getGrant, listRevoking, putGrant, removeEntry } from './store.ts'
import type { UserGrants } from './user-grants.ts'

/** How often a worker looks for queued revocations. */
const pollMs = 3_000
/** Delays between the attempts of one revocation. */
const delaysMs = [2_000, 15_000, 120_000, 900_000, 7_200_000]
/** An attempt that takes longer counts as failed, for example because its worker died. */
const attemptMs = 30_000
/** A revocation fails after this time if no gateway has its policy. */
const maxAgeMs = 7 * 24 * 3_600_000

type Find = (client: string) => UserGrants | undefined

let isWatching = false
let isRunning = false

/** Carries out queued revocations from now on. `find` returns the service with an id. */
export function watchRevocations(find: Find): void {
  if (isWatching) return
  isWatching = true
  setInterval(() => void runAll(find), pollMs).unref()
}

async function runAll(find: Find): Promise<void> {
  if (isRunning) return
  isRunning = true
  try {
    for (const [key, stored] of await listRevoking()) await attempt(find, key, stored)
  } catch {
    // The store cannot be reached; the queue is still there next time.
  } finally {
    isRunning = false
  }
}

/** Carries out one revocation at once, if possible. Never rejects. */
export async function revokeNow(grants: UserGrants, key: string): Promise<void> {
  try {
    await attempt(() => grants, key, await getGrant(key))
  } catch {
    // The revocation stays in the queue.
  }
}

async function attempt(find: Find, key: string, { record, version }: StoredGrant): Promise<void> {
  const now = Date.now()
  const { revocation } = record ?? {}
  if (record === undefined || revocation === undefined || revocation.nextAt > now) return
  const grants = find(record.client)
  if (grants?.keyring() === undefined) {
    if (now < revocation.at + maxAgeMs) return
    return finish(
      key,
      record,
      'failed',
      'no gateway has the policy and the sealing keys of the grant',
    )
  }
  // Claims the entry. This fails if another worker has claimed it.
  const attempts = revocation.attempts + 1
  const begun = { ...record, revocation: { ...revocation, attempts, nextAt: now + attemptMs } }
  const claimed = await putGrant(key, begun, version)
  if (claimed === undefined) return
  try {
    const isRevoked = await grants.revokeTokens(record, key.split('.')[1] ?? '')
    await finish(key, begun, isRevoked ? 'revoked' : 'unsupported')
  } catch (error) {
    if (!(error instanceof TokenError)) throw error
    const delayMs = delaysMs[revocation.attempts]
    if (delayMs === undefined) return finish(key, begun, 'failed', error.message)
    const nextAt = Date.now() + delayMs
    const later = { ...begun.revocation, nextAt, problem: error.message }
    await putGrant(key, { ...begun, revocation: later }, claimed)
  }
}

/** Replaces a queued revocation by its outcome, which has no tokens. */
async function finish(
  key: string,
  record: GrantRecord,
  outcome: 'revoked' | 'unsupported' | 'failed',
  problem?: string,
): Promise<void> {
  // The user may have been erased meanwhile, whose name must not come back.
  const { record: newest = record } = await getGrant(key)
  const { at = Date.now(), attempts = 0 } = newest.revocation ?? {}
  const revocation = { at, attempts, nextAt: 0, outcome, ...(problem !== undefined && { problem }) }
  const name = key.slice(kindOfKey(key).length)
  await putGrant(`revoked${name}`, { ...newest, sealed: '', revocation }, 0)
  await removeEntry(key)
}
