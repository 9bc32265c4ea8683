/** Checks of a state: that of an event log, or that of manifests. */
import type { ObjectState } from '../../../control/desired/object-state.ts'
import { certificateProblems } from '../../../control/plane/certificate-dates.ts'
import { formatProblem } from '../../../control/watch/source-problem.ts'
import { objectText } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { FieldPlaces } from '../recording/field-places.ts'
import { foldRecording, readRecording, readState } from '../recording/recording.ts'
import { withUnaskedProxies } from '../recording/unasked-proxies.ts'
import { unresolvedReferences } from '../recording/unresolved-references.ts'
import { conditionFindings, type SourceOptions } from './conditions.ts'
import { type CheckPlan, errorAbout, type Finding, warningAbout } from './finding.ts'

/** Returns the checks of manifests. */
export async function manifestChecks(file: readonly string[]): Promise<CheckPlan[]> {
  const places = new FieldPlaces()
  const recording = await readRecording({ file, places }, () => undefined)
  const fold = await foldRecording(recording)
  const advice = 'correct the manifest; `sluice validate` names every problem with its line'
  const findings: Finding[] = recording.problems.map((problem) => ({
    severity: problem.severity,
    subject: problem.file,
    message: formatProblem(problem),
    advice,
  }))
  const references = unresolvedReferences(recording, fold, places).map((problem) =>
    warningAbout(
      problem.file,
      formatProblem(problem),
      'correct the name, or add the object to the manifests',
    ),
  )
  return [
    { name: 'manifests', run: () => ({ findings }) },
    { name: 'references', run: () => ({ findings: references }) },
    ...stateChecks(fold, file.map((path) => `-f ${path}`).join(' ')),
  ]
}

/** Returns the checks of an event log. @throws UsageError if the log cannot be read */
export async function logChecks(
  options: { readonly logFile?: string; readonly nats?: string },
  source: SourceOptions,
): Promise<CheckPlan[]> {
  const { fold } = await readState(options, () => undefined)
  return [...stateChecks(fold, source), { name: 'proxies', run: () => proxies(fold, source) }]
}

const stateChecks = (fold: Fold, source: SourceOptions): CheckPlan[] => [
  { name: 'conditions', run: () => ({ findings: conditions(fold, source) }) },
  { name: 'certificates', run: () => ({ findings: certificatesOf(fold.graph.objects()) }) },
]

function conditions(fold: Fold, source: SourceOptions): Finding[] {
  const isUnasked = source.startsWith('-f ')
  const refused = [...fold.graph.objects()].flatMap(({ ref, refused: version }) =>
    (version?.problems ?? []).map(({ path, message }) =>
      errorAbout(
        objectText(ref),
        `the newest version is refused: ${path}: ${message}`,
        'correct the field; the last valid version stays in force',
      ),
    ),
  )
  const decided = fold
    .statuses()
    .flatMap(([ref, status]) =>
      conditionFindings(ref, isUnasked ? withUnaskedProxies(status) : status, source),
    )
    // Conditions that only a running gateway can decide are not findings about manifests.
    .filter(({ message }) => !isUnasked || !message.includes('(NotAsked)'))
  return [...refused, ...decided]
}

/** Findings about the certificates in Secrets and ConfigMaps. */
export function certificatesOf(states: Iterable<ObjectState>): Finding[] {
  const now = Date.now()
  return [...states].flatMap((state) =>
    certificateProblems(state, now).map(({ ref, message, isValid }) => ({
      severity: isValid ? 'warning' : 'error',
      subject: objectText(ref),
      message,
      advice: 'renew the certificate and write it to this object; it is used without a restart',
    })),
  )
}

function proxies(fold: Fold, source: SourceOptions): { findings: Finding[]; notChecked?: string } {
  const known = fold.proxies()
  const findings = known.flatMap(({ proxy, state, watermark, rejections }): Finding[] => [
    ...(state === 'ready'
      ? []
      : [
          warningAbout(
            `proxy ${proxy}`,
            watermark < 0
              ? `it is ${state}, and has not acknowledged any configuration`
              : `it is ${state}; the last version that it acknowledged is ${watermark}`,
            `look at the log of the proxy, then \`sluice status ${source}\``,
          ),
        ]),
    ...Object.entries(rejections).map(([resource, { message }]) =>
      errorAbout(
        `proxy ${proxy}`,
        `it rejects ${resource}: ${message}`,
        'correct the object, or update the proxy if its version is older than that of the controller',
      ),
    ),
  ])
  return known.length > 0 ? { findings } : { findings, notChecked: 'no proxy is in the log' }
}
