/** `sluice validate`: what would the cluster, and the control plane, say of these manifests? */
import { objectKey } from '../model/names.ts'
import { regexProblem } from '../pipeline/regex-problem.ts'
import { replay } from '../replay/index.ts'
import { formatProblem, isUnreadable, type SourceProblem } from '../watch/source-problem.ts'
import { listManifests, type Recording } from './offline.ts'
import { exitCode, type Output, type OutputFormat } from './output.ts'

interface ValidatedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly status: unknown
  readonly errors: readonly { readonly path: string; readonly message: string }[]
}

const isError = ({ severity }: SourceProblem) => severity === 'error'

/** Problems of a file that belong to no object stand under an object without a kind. */
function objectsOf({ events, problems }: Recording, statuses: Map<string, unknown>) {
  const objects = new Map<
    string,
    ValidatedObject & { errors: { path: string; message: string }[] }
  >()
  const find = (kind: string, namespace: string, name: string) => {
    const key = objectKey({ kind, namespace, name })
    const known = objects.get(key)
    if (known !== undefined) return known
    const fresh = { kind, namespace, name, status: statuses.get(key) ?? {}, errors: [] }
    objects.set(key, fresh)
    return fresh
  }
  for (const { event } of events) {
    if (event.type !== 'dev.sluice.resource.applied.v1') continue
    if (event.data.origin?.line !== undefined && !event.data.origin.file.startsWith('(')) {
      find(event.data.kind, event.data.namespace, event.data.name)
    }
  }
  for (const problem of problems.filter(isError)) {
    const { kind = '', namespace = '', name = '', path = '', message } = problem
    find(kind, namespace, name).errors.push({
      path,
      message: kind === '' ? formatProblem(problem) : message,
    })
  }
  return [...objects.values()]
}

/** Exit code 0: all valid; 1: some object is not; 2: a file cannot be read, or is not YAML or JSON. */
export async function validate(
  paths: readonly string[],
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const recording = await listManifests(paths)
  const { fold } = await replay(recording.events, { checkRegex: regexProblem })
  const errors = recording.problems.filter(isError)
  if (format === 'json') {
    const statuses = new Map(fold.statuses().map(([ref, status]) => [objectKey(ref), status]))
    output.print(JSON.stringify({ objects: objectsOf(recording, statuses) }, undefined, 2))
  } else {
    for (const problem of recording.problems) output.print(formatProblem(problem))
    if (errors.length === 0) output.report('every object is valid')
  }
  if (errors.some(isUnreadable)) return exitCode.usage
  return errors.length === 0 ? exitCode.fine : exitCode.no
}
