/**
 * `sluice explain request --id` shows how a recorded request was decided: each step, and the version of its
 * object at the log position of the record.
 */
import { DamagedEventError, UnknownEventTypeError } from '../../../../events/index.ts'
import { LogError } from '../../../control/log/index.ts'
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import { budgetsOf } from '../../../past/decisions/budgets.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import { type DecisionSource, eachDecision } from '../decisions/source.ts'
import { decidingStep, findingText } from '../decisions/text.ts'
import { recordFolderOf } from '../recording/newest-log.ts'
import type { RecordingOptions } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { configurationAt } from './configuration-at.ts'
import { requiredChange } from './decision-change.ts'
import type { ExplainedStep, Explanation, ObjectVersion } from './explained-decision.ts'
import { explanationText } from './explained-text.ts'

interface DecisionOptions extends RecordingOptions, DecisionSource {
  readonly id: string
}

/**
 * The exit code is 1 if no record has the id, and 2 if a damaged part may have it.
 * @throws UsageError
 */
export async function explainDecision(
  options: DecisionOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { id, nats, file, logFile } = options
  const recordDir =
    options.recordDir ?? (logFile === undefined ? undefined : recordFolderOf(logFile))
  if (file !== undefined) {
    throw new UsageError('explain request --id reads a log (--log-file or --nats), not manifests')
  }
  if (recordDir === undefined && nats === undefined) {
    throw new UsageError('explain request --id needs --record-dir, --log-file or --nats')
  }
  const found: RecordedDecision[] = []
  const { selected, isReadable } = await eachDecision(
    { recordDir, nats },
    { id },
    report,
    (decision) => {
      found[0] = decision
    },
  )
  const [decision] = found
  if (decision === undefined) {
    report(isReadable ? `no record has the id ${id}` : `no readable record has the id ${id}`)
    return { text: () => [], exitCode: isReadable ? exitCode.negative : exitCode.usage }
  }
  if (selected > 1) report(`${selected} records have the id ${id}; this is the last one`)
  const explanation = explain(decision, await readConfiguration(options, decision, report))
  return { text: () => explanationText(explanation), json: explanationJson(explanation) }
}

type Found = Awaited<ReturnType<typeof configurationAt>>

/** Reads object versions from the log. If that fails, the explanation uses only the record. */
async function readConfiguration(
  options: DecisionOptions,
  decision: RecordedDecision,
  report: Output['report'],
): Promise<Found> {
  if (options.logFile === undefined && options.nats === undefined) {
    return { problem: 'no event log is given (--log-file or --nats)' }
  }
  try {
    const refs = objectsOf(decision).map(parseObject)
    return await configurationAt(options, decision.position, refs, report)
  } catch (error) {
    const isUnreadable =
      error instanceof LogError ||
      error instanceof DamagedEventError ||
      error instanceof UnknownEventTypeError
    if (!isUnreadable) throw error
    return { problem: error.message }
  }
}

function explain(decision: RecordedDecision, found: Found): Explanation {
  const versions = 'versions' in found ? found.versions : undefined
  const { gateway, route } = decision.route
  const versionOf = (object: string): ObjectVersion => {
    return { object, ...versions?.get(objectKey(parseObject(object))) }
  }
  return {
    decision,
    problem: 'problem' in found ? found.problem : undefined,
    gateway: gateway === undefined ? undefined : versionOf(`Gateway ${gateway}`),
    route: route === undefined ? undefined : versionOf(route),
    steps: stepsOf(decision, versionOf),
  }
}

/** The objects that a decision names, as `Kind namespace/name`. */
function objectsOf({ route: { gateway, route }, steps }: RecordedDecision): string[] {
  return [
    ...(gateway === undefined ? [] : [`Gateway ${gateway}`]),
    ...(route === undefined ? [] : [route]),
    ...steps.flatMap(({ from }) => from.map(({ object }) => object)),
  ]
}

/** Reads `Kind namespace/name`. */
function parseObject(text: string): ObjectRef {
  const [kind = '', path = ''] = text.split(' ')
  const [namespace = '', name = ''] = path.split('/')
  return { kind, namespace, name }
}

function stepsOf(
  decision: RecordedDecision,
  versionOf: (object: string) => ObjectVersion,
): ExplainedStep[] {
  const deciding = decidingStep(decision)
  return decision.steps.map((recorded) => {
    const { step, verdict, notes } = recorded
    const from = recorded.from.map(({ object }) => versionOf(object))
    const reason = recorded === deciding ? findingText(decision, notes) : notes.join('; ')
    return { step, ...originOf(step, from, reason), verdict, ...(reason !== '' && { reason }) }
  })
}

/** Returns the object that decided, or the most specific one, and all objects if there are several. */
function originOf(
  step: string,
  from: readonly ObjectVersion[],
  reason: string,
): Partial<ExplainedStep> {
  // Each policy of an authorization is one rule, which the reason names by its position.
  const [, rule] =
    (step === 'traffic.authorization' && /^(?:Deny|Require) rule (\d+) /.exec(reason)) || []
  const decided = rule === undefined ? undefined : from[Number(rule)]
  return { ...(decided ?? from.at(-1)), ...(from.length > 1 && { from }) }
}

function explanationJson(explanation: Explanation): unknown {
  const { decision, problem, gateway, route, steps } = explanation
  const { id, time, proxy, worker, position, request, attempts, details, response } = decision
  const { listener, rule, ruleName, backend, endpoint } = decision.route
  const budgets = budgetsOf(decision)
  return {
    request: { id, time, proxy, worker, ...request },
    position,
    problem,
    listener: gateway && { ...gateway, name: listener },
    route: route && { ...route, rule, ruleName },
    steps,
    attempts,
    backend: backend === undefined ? undefined : { name: backend, endpoint },
    details,
    budgets: budgets.length === 0 ? undefined : budgets,
    response,
    change: requiredChange(decision, steps),
  }
}
