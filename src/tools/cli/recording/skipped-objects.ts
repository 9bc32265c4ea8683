import type { SourceProblem } from '../../../control/watch/source-problem.ts'

/** Maximum number of kinds that the summary names. */
const maxKinds = 8

/**
 * Replaces the problems about objects that do not concern gateways with one line that counts them, since a
 * rendered chart has many.
 */
export function withoutForeign(found: readonly SourceProblem[]) {
  const { foreign = [], other: problems = [] } = Object.groupBy(found, ({ reason }) =>
    reason === 'foreign' ? 'foreign' : 'other',
  )
  return { problems, skipped: foreign.length === 0 ? undefined : skippedText(foreign) }
}

function skippedText(problems: readonly SourceProblem[]): string {
  const counts = [...Map.groupBy(problems, ({ kind = '' }) => kind)]
    .map(([kind, objects]) => ({ kind, count: objects.length }))
    .sort((a, b) => b.count - a.count || (a.kind < b.kind ? -1 : 1))
  const named = counts.slice(0, maxKinds).map(({ kind, count }) => `${kind} (${count})`)
  const others = counts.length - named.length
  const rest = others > 0 ? [`${others} other kind${others === 1 ? '' : 's'}`] : []
  const objects = problems.length === 1 ? '1 object' : `${problems.length} objects`
  return `skipped ${objects} of kinds that Sluice does not read: ${[...named, ...rest].join(', ')}`
}
