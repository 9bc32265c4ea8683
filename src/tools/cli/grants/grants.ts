/** `sluice grants list` and `sluice grants revoke`, also while gateways run. */
import { existsSync } from 'node:fs'
import {
  type GrantKind,
  type GrantRecord,
  type GrantStore,
  removeGrant,
} from '../../../ground/model/grants.ts'
import { newestLog } from '../recording/newest-log.ts'
import { grantFileOf, openGrants } from '../shared/grant-store.ts'
import { type CommandResult, exitCode, type Output, table, UsageError } from '../shared/output.ts'

export interface GrantsOptions {
  readonly logFile?: string
  readonly nats?: string
  readonly grantStore?: string
  readonly service?: string
  readonly principal?: string
  /** Whether to list removed grants, and the outcome of revoking their tokens. */
  readonly revoked?: boolean
}

interface FoundGrant {
  readonly key: string
  readonly record: GrantRecord
}

/** @throws UsageError if there is no store */
async function withStore<Result>(
  options: GrantsOptions,
  report: Output['report'],
  work: (store: GrantStore) => Promise<Result>,
): Promise<Result> {
  const store = await openGrants(placeOf(options, report))
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

function placeOf({ grantStore, nats, logFile }: GrantsOptions, report: Output['report']): string {
  const named = grantStore ?? nats
  if (named !== undefined) return named
  const log = logFile ?? newestLog(report)
  const file = log && grantFileOf(log)
  if (file !== undefined && existsSync(file)) return file
  throw new NoGrantsError(`no grants found at ${file ?? 'the state folder'}; set --grant-store`)
}

/** Thrown if no gateway has stored a grant. */
class NoGrantsError extends UsageError {}

async function find(
  store: GrantStore,
  options: GrantsOptions,
  kind: GrantKind = 'grant',
): Promise<FoundGrant[]> {
  const { service, principal } = options
  return (await store.list(kind)).flatMap(([key, { record }]) => {
    if (record === undefined) return []
    const isWanted =
      (service ?? record.service) === record.service &&
      (principal ?? record.principal) === record.principal
    return isWanted ? [{ key, record }] : []
  })
}

const shown = ({ record }: FoundGrant) => ({
  principal: record.principal,
  service: record.service,
  createdAt: new Date(record.createdAt).toISOString(),
})

export async function listGrants(
  options: GrantsOptions,
  report: Output['report'],
): Promise<CommandResult> {
  if (options.revoked === true) return listRevoked(options, report)
  const rows = (await withStore(options, report, (store) => find(store, options))).map(shown)
  return {
    text: () => [
      table([
        ['PRINCIPAL', 'SERVICE', 'CREATED'],
        ...rows.map(({ principal, service, createdAt }) => [principal, service, createdAt]),
      ]),
    ],
    json: rows,
    exitCode: rows.length === 0 ? exitCode.negative : exitCode.success,
  }
}

async function listRevoked(
  options: GrantsOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const found = await withStore(options, report, async (store) => [
    ...(await find(store, options, 'revoking')),
    ...(await find(store, options, 'revoked')),
  ])
  const rows = found
    .map(({ record }) => {
      const { at = 0, attempts = 0, outcome = 'pending', problem } = record.revocation ?? {}
      const removedAt = new Date(at).toISOString()
      const { principal, service } = record
      return { principal, service, removedAt, tokens: outcome, attempts, problem }
    })
    .sort((a, b) => (a.removedAt < b.removedAt ? -1 : 1))
  return {
    text: () => [
      table([
        ['PRINCIPAL', 'SERVICE', 'REMOVED', 'TOKENS', 'ATTEMPTS', 'PROBLEM'],
        ...rows.map(({ principal, service, removedAt, tokens, attempts, problem }) => [
          principal === '' ? '(erased)' : principal,
          service,
          removedAt,
          tokens,
          `${attempts}`,
          problem ?? '',
        ]),
      ]),
    ],
    json: rows,
    exitCode: rows.length === 0 ? exitCode.negative : exitCode.success,
  }
}

/** @throws UsageError if neither a service nor a principal is named, or nothing is found */
export async function revokeGrants(
  options: GrantsOptions,
  report: Output['report'],
): Promise<CommandResult> {
  if ((options.service ?? options.principal) === undefined) {
    throw new UsageError('set --principal or --service')
  }
  const revoked = await withStore(options, report, async (store) => {
    const found = await find(store, options)
    for (const { key } of found) await removeGrant(store, key, Date.now())
    return found.map(shown)
  })
  if (revoked.length === 0) throw new UsageError('no grant matches')
  return {
    text: () =>
      revoked.map(
        ({ principal, service }) =>
          `${principal} at ${service}: removed; a gateway revokes the tokens at the service (see sluice grants list --revoked)`,
      ),
    json: revoked,
  }
}

/**
 * Removes the grants of an erased user, and the name of the user from the revocations of earlier ones. Resolves to the
 * number of removed grants.
 */
export async function removeGrantsOf(
  principal: string,
  { logFile, nats, grantStore }: GrantsOptions,
  report: Output['report'],
): Promise<number> {
  const options: GrantsOptions = {
    principal,
    ...(logFile !== undefined && { logFile }),
    ...(nats !== undefined && { nats }),
    ...(grantStore !== undefined && { grantStore }),
  }
  const removeAll = async (store: GrantStore): Promise<number> => {
    const found = await find(store, options)
    for (const { key } of found) await removeGrant(store, key, Date.now(), true)
    for (const { key } of await find(store, options, 'revoking')) await eraseName(store, key)
    for (const { key } of await find(store, options, 'revoked')) await store.remove(key)
    return found.length
  }
  return withStore(options, report, removeAll).catch((error: unknown) => {
    if (error instanceof NoGrantsError) return 0
    throw error
  })
}

/** Removes the name of the user from a revocation. Retries, because a gateway may be changing the entry. */
async function eraseName(store: GrantStore, key: string): Promise<void> {
  for (;;) {
    const { record, version } = await store.get(key)
    if (record === undefined) return
    if ((await store.put(key, { ...record, principal: '' }, version)) !== undefined) return
  }
}
