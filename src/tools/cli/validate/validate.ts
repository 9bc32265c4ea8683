/** `sluice validate` prints the problems that a cluster and the control plane would report for manifests. */
import type { ResourceApplied } from '../../../../events/index.ts'
import {
  formatProblem,
  isUnreadable,
  type SourceProblem,
} from '../../../control/watch/source-problem.ts'
import { objectKey } from '../../../ground/model/names.ts'
import { placedConditions } from '../../../ground/model/placed-conditions.ts'
import { isRefusal } from '../../../past/explain/health.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { FieldPlaces } from '../recording/field-places.ts'
import { foldRecording, type Recording, readManifests } from '../recording/recording.ts'
import { referencesOfObject, unresolvedReferences } from '../recording/unresolved-references.ts'
import { writtenObjects } from '../recording/written-objects.ts'
import {
  type CommandResult,
  exitCode,
  type Output,
  type OutputFormat,
  UsageError,
} from '../shared/output.ts'
import { packageVersion } from '../shared/version.ts'
import { certificateWarnings } from './certificate-warnings.ts'
import { formatReport, type ReportFormat } from './problem-reports.ts'
import { fieldsOfMessage } from './refusal-places.ts'
import { replacedGuards } from './replaced-guards.ts'
import { unreachableRules } from './unreachable-rules.ts'

const isError = ({ severity }: SourceProblem) => severity === 'error'

/**
 * Problems that only conditions report, without duplicates. It is not an error that an object is missing
 * from the files or that no cluster runs.
 */
function conditionProblems(recording: Recording, fold: Fold, places: FieldPlaces): SourceProblem[] {
  const known = Map.groupBy(recording.problems.filter(isError), keyOf)
  return writtenObjects(recording).flatMap((written) => {
    const reported = known.get(objectKey(written)) ?? []
    return refusalsOf(written, fold, places).filter(({ message }) =>
      reported.every((problem) => !message.includes(problem.message)),
    )
  })
}

const keyOf = ({ kind = '', namespace = '', name = '' }: SourceProblem) =>
  objectKey({ kind, namespace, name })

/** The mistakes in an object that its conditions report. */
function refusalsOf(
  written: ResourceApplied['data'],
  fold: Fold,
  places: FieldPlaces,
): SourceProblem[] {
  const { kind, namespace, name } = written
  const derivations = fold.graph.derivationsOf({ kind, namespace, name })
  const status = derivations.findLast((derivation) => derivation.status !== undefined)?.status
  const references = referencesOfObject({ kind, namespace, name }, fold)
  const common = { severity: 'error', reason: 'faulty', kind, namespace, name } as const
  const found = new Map<string, SourceProblem[]>()
  for (const placed of placedConditions(status)) {
    if (!isRefusal(placed.condition)) continue
    const { type, message, own = [message] } = placed.condition
    for (const mistake of own.filter((text) => !found.has(text))) {
      const problem = { ...common, path: `${placed.path}.${type}`, message: mistake }
      const fields = fieldsOfMessage(mistake, placed, references)
      const at = places.findAll(written, fields)
      found.set(
        mistake,
        at.map((place) => ({ ...problem, ...place })),
      )
    }
  }
  return [...found.values()].flat()
}

interface ValidatedObject {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly status: unknown
  readonly errors: ValidationError[]
  /**
   * References to objects that the files do not define, guards and rules that have no effect, and certificates
   * that are not valid or expire soon.
   */
  readonly warnings: ValidationError[]
}

/** Lines and columns begin at 1; they are not set if the problem is about the whole file. */
type ValidationError = Required<Pick<SourceProblem, 'path' | 'message' | 'file'>> &
  Pick<SourceProblem, 'line' | 'column'>

/** Groups problems by object. Those without an object belong to an entry with an empty kind and name. */
function objectsOf(
  recording: Recording,
  problems: readonly SourceProblem[],
  fold: Fold,
): ValidatedObject[] {
  const statuses = new Map(fold.statuses().map(([ref, status]) => [objectKey(ref), status]))
  const objects = new Map<string, ValidatedObject>()
  const find = ({ kind = '', namespace = '', name = '' }): ValidatedObject => {
    const key = objectKey({ kind, namespace, name })
    const known = objects.get(key)
    if (known !== undefined) return known
    const fresh = {
      kind,
      namespace,
      name,
      status: statuses.get(key) ?? {},
      errors: [],
      warnings: [],
    }
    objects.set(key, fresh)
    return fresh
  }
  for (const written of writtenObjects(recording)) find(written)
  for (const problem of problems) {
    const { path = '', file, line, column } = problem
    const message = problem.kind ? problem.message : formatProblem(problem)
    const { errors, warnings } = find(problem)
    const list = isError(problem) ? errors : warnings
    list.push({ path, message, file, line, column })
  }
  return [...objects.values()]
}

export interface ValidateOptions {
  readonly file: readonly string[]
  readonly output: OutputFormat
  /** Prints a report for another tool in place of `output`. */
  readonly format?: ReportFormat
  /** The exit code is also 1 if a reference leads to an object that the files do not define. */
  readonly strict?: boolean
}

function reportOf(
  recording: Recording,
  problems: readonly SourceProblem[],
  format: ReportFormat,
): string {
  const objects = writtenObjects(recording).map((written) => ({
    ...written,
    file: written.origin.file,
  }))
  return formatReport({ version: packageVersion(), problems, objects }, format)
}

/** The exit code is 1 if an object is invalid, and 2 if a file cannot be read or parsed. */
export async function validate(
  { file, output, format, strict = false }: ValidateOptions,
  report: Output['report'],
): Promise<CommandResult> {
  if (file.length === 0)
    throw new UsageError('name the manifests to check: files, folders, or - for stdin')
  const places = new FieldPlaces()
  const recording = await readManifests(file, { places })
  const fold = await foldRecording(recording)
  const unresolved = unresolvedReferences(recording, fold, places)
  const refused = conditionProblems(recording, fold, places)
  const warnings = [
    ...replacedGuards(recording, fold, places),
    ...certificateWarnings(recording, fold, places, Date.now()),
    ...unreachableRules(recording, fold, places),
    ...unresolved,
  ]
  const problems = [...recording.problems, ...refused, ...warnings]
  const errors = problems.filter(isError)
  if (errors.length === 0 && output === 'text' && format === undefined) {
    // If no object was found, the folder name may be mistyped.
    const hasObjects = writtenObjects(recording).length > 0
    report(hasObjects ? 'every object is valid' : 'no object was found')
  }
  if (recording.skipped !== undefined) report(recording.skipped)
  const isRefused = errors.length > 0 || (strict && unresolved.length > 0)
  const code = isRefused ? exitCode.negative : exitCode.success
  return {
    text: () =>
      format === undefined ? problems.map(formatProblem) : [reportOf(recording, problems, format)],
    json: { objects: objectsOf(recording, [...errors, ...warnings], fold) },
    exitCode: errors.some(isUnreadable) ? exitCode.usage : code,
  }
}
