/** `sluice replay`: folds a recorded log again and compares with what was published at the time. */
import { regexProblem } from '../pipeline/regex-problem.ts'
import { type Comparison, replay } from '../replay/index.ts'
import { type OfflineOptions, readRecording } from './offline.ts'
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
  const recording = await readRecording(options)
  const { extent } = recording
  // A state of another fold version would make another one of what follows.
  const base = extent.isOwn ? extent.base : undefined
  const result = await replay(recording.events, { checkRegex: regexProblem }, base)
  const { comparisons, fold, foldVersion } = result
  const different = comparisons.filter(({ equal }) => equal === false)
  const incomparable = comparisons.filter(({ equal }) => equal === undefined)
  const digests = fold.digests()
  const summary = {
    events: result.events,
    missing: result.missing,
    ...(base !== undefined && { from: base.position }),
    position: fold.position,
    foldVersion,
    digests,
    resources: fold.resources().length,
    statuses: fold.statuses().length,
    published: comparisons.length,
    different,
    incomparable: incomparable.length,
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
    if (result.missing > 0) {
      output.print('so these states are not those of the running gateway, and none can be compared')
    } else if (incomparable.length > 0) {
      output.print(
        `${incomparable.length} were published by another fold version than ${foldVersion}; nothing is claimed about them`,
      )
    }
  }
  return different.length === 0 && result.missing === 0 ? exitCode.fine : exitCode.no
}
