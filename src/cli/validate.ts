/** `sluice validate` prints the problems that a cluster and the control plane would report for manifests. */
import type { ResourceApplied, SluiceEvent } from '../../events/index.ts'
import type { DecidedCondition } from '../model/conditions.ts'
import { objectKey } from '../model/names.ts'
import type { Fold } from '../replay/index.ts'
import { builtInFile } from '../watch/claim-book.ts'
import { formatProblem, isUnreadable, type SourceProblem } from '../watch/source-problem.ts'
import { placedConditions } from './conditions.ts'
import { type Answer, exitCode, type Output, type OutputFormat } from './output.ts'
import { foldRecording, type Recording, readManifests } from './recording.ts'

/** Returns true if an event is about an object from a manifest rather than a built-in one. */
function isFromManifest(event: SluiceEvent): event is ResourceApplied {
  if (event.type !== 'dev.sluice.resource.applied.v1') return false
  const { origin } = event.data
  return origin?.line !== undefined && origin.file !== builtInFile
}

const isError = ({ severity }: SourceProblem) => severity === 'error'

const refusalTypes = new Set(['Accepted', 'ResolvedRefs', 'Programmed', 'Attached'])

/** Returns true if a condition reports that a part of the object has no effect. */
function isRefusal({ type, status, reason }: DecidedCondition): boolean {
  if (type === 'PartiallyInvalid') return status === 'True'
  if (!refusalTypes.has(type)) return false
  return status === 'False' || (status === 'True' && reason === 'PartiallyValid')
}

/**
 * Problems that only conditions report, without duplicates. It is not a problem that an object is missing
 * from the files or that no cluster runs.
 */
function conditionProblems({ events, problems }: Recording, fold: Fold): SourceProblem[] {
  const known = Map.groupBy(problems.filter(isError), keyOf)
  return events.flatMap(({ event }) => {
    if (!isFromManifest(event)) return []
    const reported = known.get(objectKey(event.data)) ?? []
    return refusalsOf(event, fold).filter(({ message }) =>
      reported.every((problem) => !message.includes(problem.message)),
    )
  })
}

const keyOf = ({ kind = '', namespace = '', name = '' }: SourceProblem) =>
  objectKey({ kind, namespace, name })

/** The mistakes in an object that its conditions report. */
function refusalsOf({ data }: ResourceApplied, fold: Fold): SourceProblem[] {
  const { kind, namespace, name, origin } = data
  const derivations = fold.graph.derivationsOf({ kind, namespace, name })
  const status = derivations.findLast((derivation) => derivation.status !== undefined)?.status
  if (origin === undefined) return []
  const { file, line } = origin
  const common = { severity: 'error', reason: 'faulty', file, line, kind, namespace, name } as const
  const found = new Map<string, SourceProblem>()
  for (const { path, condition } of placedConditions(status)) {
    if (!isRefusal(condition)) continue
    const { type, message, own = [message] } = condition
    for (const mistake of own.filter((text) => !found.has(text))) {
      found.set(mistake, { ...common, path: `${path}.${type}`, message: mistake })
    }
  }
  return [...found.values()]
}

interface ValidatedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly status: unknown
  readonly errors: ValidationError[]
}

/** Lines and columns begin at 1; they are not set if the problem is about the whole file. */
type ValidationError = Required<Pick<SourceProblem, 'path' | 'message' | 'file'>> &
  Pick<SourceProblem, 'line' | 'column'>

/** Groups errors by object. Errors without an object belong to an entry with an empty kind and name. */
function objectsOf(
  events: Recording['events'],
  errors: readonly SourceProblem[],
  fold: Fold,
): ValidatedObject[] {
  const statuses = new Map(fold.statuses().map(([ref, status]) => [objectKey(ref), status]))
  const objects = new Map<string, ValidatedObject>()
  const find = ({ kind = '', namespace = '', name = '' }): ValidatedObject => {
    const key = objectKey({ kind, namespace, name })
    const known = objects.get(key)
    if (known !== undefined) return known
    const fresh = { kind, namespace, name, status: statuses.get(key) ?? {}, errors: [] }
    objects.set(key, fresh)
    return fresh
  }
  for (const { event } of events) if (isFromManifest(event)) find(event.data)
  for (const error of errors) {
    const { path = '', file, line, column } = error
    const message = error.kind ? error.message : formatProblem(error)
    find(error).errors.push({ path, message, file, line, column })
  }
  return [...objects.values()]
}

/** The exit code is 1 if an object is invalid, and 2 if a file cannot be read or parsed. */
export async function validate(
  { file, output }: { readonly file: readonly string[]; readonly output: OutputFormat },
  report: Output['report'],
): Promise<Answer> {
  const recording = await readManifests(file)
  const fold = await foldRecording(recording)
  const problems = [...recording.problems, ...conditionProblems(recording, fold)]
  const errors = problems.filter(isError)
  if (errors.length === 0 && output === 'text') {
    // If no object was found, the folder name may be mistyped.
    const hasObjects = recording.events.some(({ event }) => isFromManifest(event))
    report(hasObjects ? 'every object is valid' : 'no object was found')
  }
  const code = errors.length === 0 ? exitCode.success : exitCode.negative
  return {
    text: () => problems.map(formatProblem),
    json: { objects: objectsOf(recording.events, errors, fold) },
    exitCode: errors.some(isUnreadable) ? exitCode.usage : code,
  }
}
