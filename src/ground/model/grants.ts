/**
 * What users allow the gateway to do for them at other services, as a store keeps it. Tokens are sealed by the workers;
 * a store and its operators see only who allowed what.
 */

export interface GrantRecord {
  /** `redirectURI` of the policy, which names the service. */
  readonly service: string
  /** Name of the principal. */
  readonly principal: string
  /** The sealed tokens. */
  readonly sealed: string
  /** In milliseconds since the epoch. */
  readonly createdAt: number
  /** Until when one worker of any proxy renews the tokens; 0 if none does. */
  readonly renewingUntil: number
}

/** A version is 0 if there is nothing with the key yet. A deleted grant has a version, but no record. */
export interface StoredGrant {
  readonly record: GrantRecord | undefined
  readonly version: number
}

/** All methods reject if the store cannot be reached. */
export interface GrantStore {
  get(key: string): Promise<StoredGrant>
  /**
   * Replaces or deletes a grant if its version is the expected one. Resolves to the new version, or undefined if another
   * writer was faster.
   */
  put(key: string, record: GrantRecord | undefined, expected: number): Promise<number | undefined>
  list(): Promise<readonly (readonly [key: string, grant: StoredGrant])[]>
  close(): Promise<void>
}

/** A question of a worker to the store that its process has open. */
export interface GrantQuestion {
  readonly type: 'grant'
  readonly id: number
  readonly key: string
  /** Set if the grant is replaced or deleted. */
  readonly put?: { readonly record: GrantRecord | undefined; readonly expected: number }
}

export interface GrantAnswer {
  readonly type: 'grant'
  readonly id: number
  readonly found?: StoredGrant
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
