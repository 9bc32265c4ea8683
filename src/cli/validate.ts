/** `sluice validate`: what would the cluster, and the control plane, say of these manifests? */
import { objectKey } from '../model/names.ts'
import { replay } from '../replay/index.ts'
import { formatProblem, isUnreadable, type SourceProblem } from '../watch/source-problem.ts'
import { conditionProblems, isWritten } from './condition-problems.ts'
import { listManifests, type Recording } from './offline.ts'
import { exitCode, type Output, type OutputFormat } from './output.ts'

interface ValidatedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly status: unknown
  readonly errors: readonly ValidationError[]
}

/** Lines and columns begin at 1; absent where the problem is of the file as a whole. */
interface ValidationError {
  readonly path: string
  readonly message: string
  readonly file: string
  readonly line?: number
  readonly column?: number
}

const isError = ({ severity }: SourceProblem) => severity === 'error'

/** Problems of a file that belong to no object stand under an object without a kind. */
function objectsOf(
  events: Recording['events'],
  problems: readonly SourceProblem[],
  statuses: Map<string, unknown>,
) {
  const objects = new Map<string, ValidatedObject & { errors: ValidationError[] }>()
  const find = (kind: string, namespace: string, name: string) => {
    const key = objectKey({ kind, namespace, name })
    const known = objects.get(key)
    if (known !== undefined) return known
    const fresh = { kind, namespace, name, status: statuses.get(key) ?? {}, errors: [] }
    objects.set(key, fresh)
    return fresh
  }
  for (const { event } of events) {
    if (isWritten(event)) find(event.data.kind, event.data.namespace, event.data.name)
  }
  for (const problem of problems.filter(isError)) {
    const { kind = '', namespace = '', name = '', path = '', file, line, column } = problem
    const message = kind === '' ? formatProblem(problem) : problem.message
    const place = line === undefined ? {} : { line, ...(column !== undefined && { column }) }
    find(kind, namespace, name).errors.push({ path, message, file, ...place })
  }
  return [...objects.values()]
}

/** A folder that was mistyped is not the same as one whose objects are fine. */
function verdictOn({ events }: Recording): string {
  const isFound = events.some(({ event }) => isWritten(event))
  return isFound ? 'every object is valid' : 'no object was found'
}

/** Exit code 0: all valid; 1: some object is not; 2: a file cannot be read, or is not YAML or JSON. */
export async function validate(
  paths: readonly string[],
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const recording = await listManifests(paths)
  const { fold } = await replay(recording.events, recording.derivation)
  const problems = [...recording.problems, ...conditionProblems(recording, fold)]
  const errors = problems.filter(isError)
  if (format === 'json') {
    const statuses = new Map(fold.statuses().map(([ref, status]) => [objectKey(ref), status]))
    output.print(
      JSON.stringify({ objects: objectsOf(recording.events, problems, statuses) }, undefined, 2),
    )
  } else {
    for (const problem of problems) output.print(formatProblem(problem))
    if (errors.length === 0) output.report(verdictOn(recording))
  }
  if (errors.some(isUnreadable)) return exitCode.usage
  return errors.length === 0 ? exitCode.fine : exitCode.no
}
