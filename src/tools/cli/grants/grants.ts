/** `sluice grants list` and `sluice grants revoke`, also while gateways run. */
import { existsSync } from 'node:fs'
import type { GrantRecord, GrantStore } from '../../../ground/model/grants.ts'
import { newestLog } from '../recording/newest-log.ts'
import { grantFileOf, openGrants } from '../shared/grant-store.ts'
import { type CommandResult, exitCode, type Output, table, UsageError } from '../shared/output.ts'

export interface GrantsOptions {
  readonly logFile?: string
  readonly nats?: string
  readonly grantStore?: string
  readonly service?: string
  readonly principal?: string
}

interface FoundGrant {
  readonly key: string
  readonly version: number
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
  throw new UsageError(`no grants found at ${file ?? 'the state folder'}; set --grant-store`)
}

async function find(store: GrantStore, options: GrantsOptions): Promise<FoundGrant[]> {
  const { service, principal } = options
  return (await store.list()).flatMap(([key, { record, version }]) => {
    if (record === undefined) return []
    const isWanted =
      (service ?? record.service) === record.service &&
      (principal ?? record.principal) === record.principal
    return isWanted ? [{ key, version, record }] : []
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
    for (const grant of found) await remove(store, grant)
    return found.map(shown)
  })
  if (revoked.length === 0) throw new UsageError('no grant matches')
  return {
    text: () => revoked.map(({ principal, service }) => `${principal} at ${service}: revoked`),
    json: revoked,
  }
}

/** A gateway may be renewing the tokens. */
async function remove(store: GrantStore, { key, version }: FoundGrant): Promise<void> {
  let expected = version
  while ((await store.put(key, undefined, expected)) === undefined) {
    const now = await store.get(key)
    if (now.record === undefined) return
    expected = now.version
  }
}
