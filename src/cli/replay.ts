/** `sluice replay` folds a recorded log again and compares the result with what was published. */
import { type Comparison, replay } from '../replay/index.ts'
import { formatProblem } from '../watch/source-problem.ts'
import { type Answer, exitCode, type Output } from './output.ts'
import { logNotices, type RecordingOptions, withRecording } from './recording.ts'

function differenceText({ version, recorded, replayed }: Comparison): string {
  const now = replayed === undefined ? 'nothing' : `${replayed.desired} ${replayed.status}`
  return `position ${version}: recorded ${recorded.desired} ${recorded.status}, replayed ${now}`
}

/** The exit code is 1 if a published state differs, or if events are missing. */
export async function replayLog(
  options: RecordingOptions,
  report: Output['report'],
): Promise<Answer> {
  return withRecording(options, async (recording) => {
    const { extent, gaps } = recording
    // A state stored by another fold version would lead to other digests, so it is not used.
    const base = extent.isSameFoldVersion ? extent.base : undefined
    const result = await replay(recording.events, recording.derivation, base)
    for (const problem of recording.problems) report(formatProblem(problem))
    const { fold, different, incomparable, foldVersion } = result
    const missing = gaps.reduce((sum, { from, to }) => sum + to - from + 1, result.missing)
    const summary = {
      events: result.events,
      missing,
      from: base?.position,
      position: fold.position,
      foldVersion,
      digests: fold.digests(),
      resources: fold.resources().length,
      statuses: fold.statuses().length,
      published: result.published,
      different,
      incomparable,
    }
    const notes = [...logNotices(recording)]
    if (missing > 0) {
      notes.push('these states differ from those of the running gateway and cannot be compared')
    } else if (incomparable > 0) {
      notes.push(
        `${incomparable} were published by other fold versions than ${foldVersion} and cannot be compared`,
      )
    }
    return {
      text: () => [
        `events     ${summary.events}, up to position ${summary.position}`,
        `desired    ${summary.digests.desired} (${summary.resources} resources)`,
        `status     ${summary.digests.status} (${summary.statuses} objects)`,
        `published  ${summary.published}, of which ${different.length} differ`,
        ...different.map(differenceText),
        ...notes,
      ],
      json: summary,
      exitCode: different.length + missing === 0 ? exitCode.success : exitCode.negative,
    }
  })
}
