/** What the statuses of written objects refuse, as problems of the files that they come from. */
import type { ResourceApplied, SluiceEvent } from '../../events/index.ts'
import type { DecidedCondition } from '../model/conditions.ts'
import { objectKey } from '../model/names.ts'
import type { Fold } from '../replay/index.ts'
import { builtInFile } from '../watch/claim-book.ts'
import type { SourceProblem } from '../watch/source-problem.ts'
import type { Recording } from './offline.ts'
import { placedConditions } from './status.ts'

/** Is it an object of a file, and not one that exists without any? */
export function isWritten(event: SluiceEvent): event is ResourceApplied {
  if (event.type !== 'dev.sluice.resource.applied.v1') return false
  const { origin } = event.data
  return origin?.line !== undefined && origin.file !== builtInFile
}

const refusing = new Set(['Accepted', 'ResolvedRefs', 'Programmed', 'Attached'])

/** Does a condition say that something written has no effect? */
function isRefusal({ type, status, reason }: DecidedCondition): boolean {
  if (type === 'PartiallyInvalid') return status === 'True'
  if (!refusing.has(type)) return false
  return status === 'False' || (status === 'True' && reason === 'PartiallyValid')
}

/**
 * Mistakes that only conditions tell, each once. An object that is not among the files, or a cluster
 * that does not run, is none.
 */
export function conditionProblems(
  { events, problems }: Pick<Recording, 'events' | 'problems'>,
  fold: Fold,
): SourceProblem[] {
  const known = new Map<string, string[]>()
  for (const { kind = '', namespace = '', name = '', message, severity } of problems) {
    if (severity !== 'error') continue
    const key = objectKey({ kind, namespace, name })
    known.set(key, [...(known.get(key) ?? []), message])
  }
  return events.flatMap(({ event }) => {
    if (!isWritten(event)) return []
    const { kind, namespace, name } = event.data
    const toldBefore = known.get(objectKey({ kind, namespace, name })) ?? []
    return problemsOf(event, fold).filter(({ message }) =>
      toldBefore.every((told) => !message.includes(told)),
    )
  })
}

function problemsOf({ data }: ResourceApplied, fold: Fold): SourceProblem[] {
  const { kind, namespace, name, origin } = data
  const derivations = fold.graph.derivationsOf({ kind, namespace, name })
  const status = derivations.findLast((derivation) => derivation.status !== undefined)?.status
  if (status === undefined || origin === undefined) return []
  const { file, line } = origin
  const found = new Map<string, SourceProblem>()
  for (const { path, condition } of placedConditions(status)) {
    if (!isRefusal(condition)) continue
    const { type, message, own = [message] } = condition
    for (const mistake of own.filter((text) => !found.has(text))) {
      found.set(mistake, {
        severity: 'error',
        reason: 'faulty',
        file,
        line,
        kind,
        namespace,
        name,
        path: `${path}.${type}`,
        message: mistake,
      })
    }
  }
  return [...found.values()]
}
