/** `sluice tools diff` shows how what MCP servers list differs from what is approved, or from what it was. */

import { type ItemFilter, matches, rowsOf } from '../../../past/explain/listed-items.ts'
import { limitOf, type RecordingOptions } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output } from '../shared/output.ts'
import { changedMembers, differenceLines, itemPath, shortDigest } from './item-text.ts'
import { type ItemHistory, readItemHistory } from './listed-items.ts'

export interface DiffOptions extends RecordingOptions, ItemFilter {
  /** Position or time after which changes are shown. If omitted, only what is not approved is. */
  readonly from?: string
}

interface Difference {
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly name: string
  readonly change: 'added' | 'changed' | 'removed'
  readonly time: string
  readonly position?: number
  /** Digests of the versions. */
  readonly before: string | undefined
  readonly after: string | undefined
}

/** The exit code is 1 if there is a difference, as with `diff`. */
export async function diffItems(
  options: DiffOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const history = await readItemHistory(options, report)
  const found =
    options.from === undefined ? unapproved(history, options) : changesAfter(history, options)
  const definitionOf = (digest: string | undefined) =>
    digest === undefined ? undefined : history.definitions.get(digest)
  return {
    text: () =>
      found.flatMap((one) => [
        headingOf(one),
        ...(one.change === 'removed'
          ? []
          : differenceLines(definitionOf(one.before), definitionOf(one.after))),
      ]),
    json: found.map((one) => ({
      ...one,
      members: changedMembers(definitionOf(one.before), definitionOf(one.after)),
    })),
    exitCode: found.length === 0 ? exitCode.success : exitCode.negative,
  }
}

function headingOf({ change, time, position, before, after, ...one }: Difference): string {
  const at = position === undefined ? `since ${time}` : `event ${position}, ${time}`
  const versions = [before, after].map((digest) =>
    digest === undefined ? 'none' : shortDigest(digest),
  )
  return `${itemPath(one)}: ${change} (${versions.join(' -> ')}), ${at}`
}

/** Items whose present version is not approved, compared with the approved one. */
function unapproved({ fold }: ItemHistory, filter: ItemFilter): Difference[] {
  return rowsOf(fold, filter).flatMap(({ item, approved, state, ...one }) => {
    if (state !== 'changed' && state !== 'new') return []
    const change = state === 'new' ? 'added' : 'changed'
    return [{ ...one, change, time: item.since, before: approved, after: item.digest }]
  })
}

function changesAfter({ changes }: ItemHistory, options: DiffOptions): Difference[] {
  const { position: from, timeMs } = limitOf(options.from, '--from')
  const isAfter = (position: number, time: string) =>
    timeMs === undefined ? position > from : Date.parse(time) > timeMs
  return changes.flatMap(({ before, after, ...one }): Difference[] => {
    if (!isAfter(one.position, one.time) || !matches(options, one)) return []
    const isNew = before === undefined || before.isGone === true
    const change = after.isGone === true ? 'removed' : isNew ? 'added' : 'changed'
    return [
      { ...one, change, before: before?.digest, after: after.isGone ? undefined : after.digest },
    ]
  })
}
