/**
 * What users allow the gateway to do for them at other services, as a store keeps it. Tokens are sealed by the workers;
 * a store and its operators see only who allowed what.
 */

export interface GrantRecord {
  /** `redirectURI` of the policy, which names the service. */
  readonly service: string
  /** Digest of the service, the client id at the service and the scopes. Only this policy may open the tokens. */
  readonly client: string
  /** Name of the principal; empty if the user was erased. */
  readonly principal: string
  /** The sealed tokens. */
  readonly sealed: string
  /** In milliseconds since the epoch. */
  readonly createdAt: number
  /** Until when one worker of any proxy renews the tokens; 0 if none does. */
  readonly renewingUntil: number
  /** Set if the grant was removed. */
  readonly revocation?: Revocation
}

/** Progress of revoking the tokens of a removed grant at the service. Times are in milliseconds since the epoch. */
interface Revocation {
  /** When the grant was removed. */
  readonly at: number
  readonly attempts: number
  /** When the next attempt may begin. */
  readonly nextAt: number
  /** Omitted until the last attempt. `unsupported`: the service has no revocation endpoint. */
  readonly outcome?: 'revoked' | 'unsupported' | 'failed'
  /** Why the last attempt failed. */
  readonly problem?: string
}

/**
 * A store has three kinds of entries: grants, whose keys have no dot, removed grants whose tokens must still be revoked
 * at the service, and the outcomes of such revocations.
 */
const grantKinds = ['grant', 'revoking', 'revoked'] as const
export type GrantKind = (typeof grantKinds)[number]

export const kindOfKey = (key: string): GrantKind =>
  grantKinds.find((kind) => key.startsWith(`${kind}.`)) ?? 'grant'

/** A version is 0 if there is nothing with the key yet. A deleted grant has a version, but no record. */
export interface StoredGrant {
  readonly record: GrantRecord | undefined
  readonly version: number
}

export type GrantEntry = readonly [key: string, grant: StoredGrant]

/** All methods reject if the store cannot be reached. */
export interface GrantStore {
  get(key: string): Promise<StoredGrant>
  /**
   * Replaces or deletes a grant if its version is the expected one. Resolves to the new version, or undefined if another
   * writer was faster.
   */
  put(key: string, record: GrantRecord | undefined, expected: number): Promise<number | undefined>
  /** Lists entries of a kind. If there are more than `limit`, any `limit` of them. */
  list(kind: GrantKind, limit?: number): Promise<readonly GrantEntry[]>
  /** Removes an entry that is not a grant, with its history. */
  remove(key: string): Promise<void>
  close(): Promise<void>
}

/** A question of a worker to the store that its process has open. */
export interface GrantQuestion {
  readonly type: 'grant'
  readonly id: number
  readonly key: string
  /** Set if the grant is replaced or deleted. */
  readonly put?: { readonly record: GrantRecord | undefined; readonly expected: number }
  /** If true, removes an entry that is not a grant. */
  readonly remove?: true
  /** If true, lists some of the pending revocations; `key` is empty. */
  readonly revoking?: true
}

export interface GrantAnswer {
  readonly type: 'grant'
  readonly id: number
  readonly found?: StoredGrant
  readonly entries?: readonly GrantEntry[]
  /** The new version. */
  readonly version?: number | undefined
  /** Why the store did not answer. */
  readonly problem?: string
}

/** Reads a stored text. Returns undefined if the grant was deleted. @throws if the text is none of ours */
export function readGrant(text: string): GrantRecord | undefined {
  const value = JSON.parse(text) as GrantRecord | null
  if (value === null) return undefined
  if (typeof value.sealed !== 'string')
    throw new Error('an entry of the store of grants is damaged')
  return value
}

export const grantText = (record: GrantRecord | undefined): string => JSON.stringify(record ?? null)

/**
 * Removes a grant, so that gateways stop using it, and queues the revocation of its tokens, which a gateway carries out
 * at the service. Resolves to the key of the queued revocation; undefined if the grant is already gone.
 */
export async function removeGrant(
  store: Pick<GrantStore, 'get' | 'put'>,
  key: string,
  nowMs: number,
  isErased = false,
): Promise<string | undefined> {
  for (;;) {
    const { record, version } = await store.get(key)
    if (record === undefined) return undefined
    // Queued first: if this process ends now, the service refuses tokens that are still here, and users are asked again.
    const queued = await queueRevocation(store, `${key}.${version}`, { record, nowMs, isErased })
    // A gateway may be renewing the tokens. Then the next version is queued, too.
    if ((await store.put(key, undefined, version)) !== undefined) return queued
  }
}

interface RemovedGrant {
  readonly record: GrantRecord
  /** In milliseconds since the epoch. */
  readonly nowMs: number
  /** Whether the name of the user must not be kept. */
  readonly isErased: boolean
}

/** Resolves to the key of the revocation. `name` begins with the key of the grant and a dot. */
export async function queueRevocation(
  { put }: Pick<GrantStore, 'put'>,
  name: string,
  { record, nowMs, isErased }: RemovedGrant,
): Promise<string> {
  const key = `revoking.${name}`
  const revocation = { at: nowMs, attempts: 0, nextAt: 0 }
  await put(key, { ...record, ...(isErased && { principal: '' }), revocation }, 0)
  return key
}
