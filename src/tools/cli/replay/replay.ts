/** `sluice replay` folds a recorded log again and compares the result with what was published. */

import { formatProblem } from '../../../control/watch/source-problem.ts'
import { type Comparison, replay, wholeLog } from '../../../past/replay/index.ts'
import { logNotices, type OpenRecording, withRecording } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output } from '../shared/output.ts'
import { type ReplayOptions, replayParallel, type VerifiedLog } from './parallel.ts'
import { resultOf } from './segment.ts'

function differenceText({ version, recorded, replayed }: Comparison): string {
  const now = replayed === undefined ? 'nothing' : `${replayed.desired} ${replayed.status}`
  return `position ${version}: recorded ${recorded.desired} ${recorded.status}, replayed ${now}`
}

const snapshotText = (position: number) =>
  `snapshot ${position}: differs from the events before it; states after it may be wrong`

const snapshotCount = ({ snapshots: { stored, compared } }: VerifiedLog) =>
  stored === 0 ? [] : [`snapshots  ${stored}, of which ${compared} were compared`]

/** Folds all events: those of a log from snapshot to snapshot, on all cores. */
async function verify(recording: OpenRecording, options: ReplayOptions): Promise<VerifiedLog> {
  const { source, events, derivation, extent } = recording
  if (source !== undefined) return replayParallel({ ...recording, source }, options)
  const { fold, ...result } = await replay(events, derivation, extent.base, {
    ...wholeLog,
    ...(extent.isRedacted === true && { isRedacted: true }),
  })
  const snapshots = { stored: 0, compared: 0 }
  return { ...resultOf(fold, { ...result, wrongSnapshots: [] }), snapshots }
}

/** The exit code is 1 if a published state or a snapshot differs, or if events are missing. */
export async function replayLog(
  options: ReplayOptions,
  report: Output['report'],
): Promise<CommandResult> {
  return withRecording(options, async (recording) => {
    const { extent, gaps } = recording
    const result = await verify(recording, options)
    for (const problem of recording.problems) report(formatProblem(problem))
    const { different, incomparable, redacted, wrongSnapshots, foldVersion } = result
    const missing = gaps.reduce((sum, { from, to }) => sum + to - from + 1, result.missing)
    const summary = {
      events: result.events,
      missing,
      from: extent.isSameFoldVersion ? extent.base?.position : undefined,
      position: result.position,
      foldVersion,
      digests: result.digests,
      resources: result.resources,
      statuses: result.statuses,
      published: result.published,
      different,
      incomparable,
      ...(redacted > 0 && { redacted }),
      snapshots: result.snapshots,
      ...(wrongSnapshots.length > 0 && { wrongSnapshots }),
    }
    const notes = [...logNotices(recording)]
    if (missing > 0) {
      notes.push('these states differ from those of the running gateway and cannot be compared')
    } else if (incomparable > 0) {
      notes.push(
        `${incomparable} were published by other fold versions than ${foldVersion} and cannot be compared`,
      )
    }
    if (redacted > 0) {
      notes.push(
        `${redacted} were published after objects whose credentials the export leaves out, and cannot be compared`,
      )
    }
    return {
      text: () => [
        `events     ${summary.events}, up to position ${summary.position}`,
        `desired    ${summary.digests.desired} (${summary.resources} resources)`,
        `status     ${summary.digests.status} (${summary.statuses} objects)`,
        `published  ${summary.published}, of which ${different.length} differ`,
        ...different.map(differenceText),
        ...snapshotCount(result),
        ...wrongSnapshots.map(snapshotText),
        ...notes,
      ],
      json: summary,
      exitCode:
        different.length + missing + wrongSnapshots.length === 0
          ? exitCode.success
          : exitCode.negative,
    }
  })
}
