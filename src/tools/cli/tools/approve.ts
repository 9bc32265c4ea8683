/** `sluice tools approve` appends which versions of items are approved, also while gateways run. */
import { randomUUID } from 'node:crypto'
import { type SluiceEvent, toolsApproved } from '../../../../events/index.ts'
import { newEvent } from '../../../control/log/index.ts'
import {
  fullName,
  type ItemFilter,
  type ListedItemRow,
  rowsOf,
} from '../../../past/explain/listed-items.ts'
import { changeLog } from '../recording/change-log.ts'
import { defaultAuthor } from '../recording/operator-change.ts'
import { type RecordingOptions, readState } from '../recording/recording.ts'
import { type CommandResult, type Output, UsageError } from '../shared/output.ts'
import { itemPath, shortDigest } from './item-text.ts'

export interface ApproveOptions extends RecordingOptions, Omit<ItemFilter, 'backend'> {
  /** Names of items; all that are not approved if omitted. */
  readonly item?: readonly string[]
  /** Whether approvals are taken back instead. */
  readonly revoke?: boolean
  readonly reason: string
  readonly author?: string
}

/** Items of one event, whose size is limited. */
const batch = 500

/** @throws UsageError if there is nothing to approve */
export async function approveItems(
  backend: string,
  options: ApproveOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { item: names, revoke = false, reason, author = defaultAuthor() } = options
  const { fold } = await readState(options, report)
  const all = rowsOf(fold, { ...options, backend })
  const unknown = names?.find((name) => !all.some((row) => row.name === name))
  if (unknown !== undefined) throw new UsageError(`${fullName(backend)} has no item ${unknown}`)
  const rows = all.filter(({ name, state, approved }) => {
    if (names !== undefined && !names.includes(name)) return false
    return revoke ? approved !== undefined : state === 'changed' || state === 'new'
  })
  if (revoke && names === undefined) throw new UsageError('--revoke needs --item')
  if (rows.length === 0) {
    throw new UsageError(`${fullName(backend)} has nothing to ${revoke ? 'revoke' : 'approve'}`)
  }
  const events = eventsOf(rows, { revoke, reason, author })
  await changeLog(options, report, () => ({ events, result: undefined }))
  const verb = revoke ? 'no longer approved' : 'approved'
  return {
    text: () => rows.map((row) => `${itemPath(row)}: ${verb} ${shortDigest(row.item.digest)}`),
    json: rows.map(({ item, state: _, approved: __, ...row }) => ({
      ...row,
      approved: revoke ? null : item.digest,
    })),
  }
}

function eventsOf(
  rows: readonly ListedItemRow[],
  {
    revoke,
    ...about
  }: { readonly revoke: boolean; readonly reason: string; readonly author: string },
): SluiceEvent[] {
  const groups = Map.groupBy(rows, ({ target, list }) => `${list} ${target}`)
  const run = randomUUID()
  let count = 0
  return [...groups.values()].flatMap((group) =>
    batchesOf(group).map((part) => {
      const [{ backend, target, list }] = part as [ListedItemRow]
      const items = Object.fromEntries(
        part.map(({ name, item }) => [name, revoke ? null : item.digest]),
      )
      const [namespace = '', name = ''] = backend.split('/')
      const subject = { kind: 'Tools', namespace, name }
      const data = { backend, target, list, items, ...about }
      return newEvent(toolsApproved, writer, subject, { id: `${run}:${count++}`, data })
    }),
  )
}

/** Readers accept these events whichever replica holds the lease, like all events without an epoch. */
const writer = { source: '/sluice/tools', epoch: 0 } as const

function batchesOf<T>(all: readonly T[]): T[][] {
  const parts: T[][] = []
  for (let from = 0; from < all.length; from += batch) parts.push(all.slice(from, from + batch))
  return parts
}
