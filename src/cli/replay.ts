/** `sluice replay`: folds a recorded log again and compares with what was published at the time. */
import { type Comparison, type FoldSnapshot, type Replay, replay } from '../replay/index.ts'
import {
  gapText,
  type OfflineOptions,
  type OpenRecording,
  openRecording,
  tellProblems,
} from './offline.ts'
import { exitCode, type Output, type OutputFormat } from './output.ts'

function differenceText({ version, recorded, replayed }: Comparison): string {
  const now = replayed === undefined ? 'nothing' : `${replayed.desired} ${replayed.status}`
  return `position ${version}: recorded ${recorded.desired} ${recorded.status}, replayed ${now}`
}

/** Exit code 0: every published state came out the same; 1: some did not, or the beginning is missing. */
export async function replayLog(
  options: OfflineOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const recording = await openRecording(options)
  const { extent, gaps, problems } = recording
  // A state of another fold version would make another one of what follows.
  const base = extent.isOwn ? extent.base : undefined
  const result = await replayOpen(recording, base)
  const { different, fold, foldVersion, incomparable } = result
  const digests = fold.digests()
  const missing = gaps.reduce((sum, { from, to }) => sum + to - from + 1, result.missing)
  tellProblems(problems, output)
  const summary = {
    events: result.events,
    missing,
    ...(base !== undefined && { from: base.position }),
    position: fold.position,
    foldVersion,
    digests,
    resources: fold.resources().length,
    statuses: fold.statuses().length,
    published: result.published,
    different,
    incomparable,
  }
  if (format === 'json') {
    output.print(JSON.stringify(summary, undefined, 2))
  } else {
    output.print(`events     ${summary.events}, up to position ${summary.position}`)
    output.print(`desired    ${digests.desired} (${summary.resources} resources)`)
    output.print(`status     ${digests.status} (${summary.statuses} objects)`)
    output.print(`published  ${summary.published}, of which ${different.length} differ`)
    for (const comparison of different) output.print(differenceText(comparison))
    if (extent.notice !== undefined) output.print(extent.notice)
    if (gaps.length > 0) output.print(gapText(gaps))
    if (missing > 0) {
      output.print('so these states are not those of the running gateway, and none can be compared')
    } else if (incomparable > 0) {
      output.print(
        `${incomparable} were published by another fold version than ${foldVersion}; nothing is claimed about them`,
      )
    }
  }
  return different.length === 0 && missing === 0 ? exitCode.fine : exitCode.no
}

async function replayOpen(
  { events, derivation, close }: OpenRecording,
  base: FoldSnapshot | undefined,
): Promise<Replay> {
  try {
    return await replay(events, derivation, base)
  } finally {
    await close()
  }
}
