/** `sluice explain` calls the module for its first argument, or explains the state of an object itself. */

import type { Recorded } from '../../../control/log/index.ts'
import { type ObjectRef, objectKey, objectText } from '../../../ground/model/names.ts'
import { placedConditions } from '../../../ground/model/placed-conditions.ts'
import { explanationOf, isAbout } from '../../../past/explain/object.ts'
import { foldEvents } from '../../../past/replay/index.ts'
import { readHistory } from '../recording/condition-history.ts'
import { suggestObjects } from '../recording/object-names.ts'
import {
  type OpenRecording,
  type RecordingOptions,
  reportProblems,
  withRecording,
} from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, table, UsageError } from '../shared/output.ts'
import { explainCondition } from './condition.ts'
import { explainProviders, type ProviderOptions } from './providers.ts'
import { type ExplainRequestOptions, explainRequest } from './request.ts'

export type ExplainOptions = ExplainRequestOptions & ProviderOptions

/** Short names for kinds, which users may type. */
const aliases: Readonly<Record<string, string>> = {
  backend: 'GatewayBackend',
  policy: 'GatewayPolicy',
  route: 'HTTPRoute',
}

/**
 * `what` is `request`, `providers`, `tool`, `agent`, `condition`, or a kind as in `KIND NAMESPACE/NAME` or
 * `KIND/NAMESPACE/NAME`.
 * @throws UsageError
 */
export async function explain(
  what: string,
  names: readonly string[],
  options: ExplainOptions,
  report: Output['report'],
): Promise<CommandResult> {
  if (what === 'request') {
    if (names.length > 0) throw new UsageError('explain request takes options only')
    if (options.id === undefined) return explainRequest(options, report)
    const { explainDecision } = await import('./decision.ts')
    return explainDecision({ ...options, id: options.id }, report)
  }
  if (what === 'providers') {
    if (names.length > 1) throw new UsageError('explain providers takes one NAMESPACE/NAME')
    return explainProviders(names[0], options, report)
  }
  if (what === 'tool') {
    const [name, ...more] = names
    if (name === undefined || more.length > 0) throw new UsageError('explain tool takes one NAME')
    const { explainTool } = await import('./tool.ts')
    return explainTool(name, options, report)
  }
  if (what === 'agent') return explainNamedAgent(names, options, report)
  const path = names.join('/')
  if (what === 'condition') {
    if (path === '') throw new UsageError('explain condition needs KIND/NAMESPACE/NAME')
    return explainCondition(path, options, report)
  }
  const [kind = '', ...rest] = [what, ...names].join('/').split('/')
  if (rest.length === 0) throw new UsageError(`explain ${what} needs a name: KIND NAMESPACE/NAME`)
  return explainObject(aliases[kind] ?? kind, rest.join('/'), options, report)
}

async function explainNamedAgent(
  [name, method, ...more]: readonly string[],
  options: RecordingOptions,
  report: Output['report'],
): Promise<CommandResult> {
  if (name?.split('/').length !== 2 || more.length > 0) {
    throw new UsageError('explain agent needs NAMESPACE/NAME and takes at most one METHOD')
  }
  const { explainAgent } = await import('./agent.ts')
  return explainAgent(name, method, options, report)
}

/** The exit code is 1 if nothing is known about the object. */
async function explainObject(
  kind: string,
  name: string,
  options: RecordingOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const read = async (recording: OpenRecording) => {
    const { source, derivation, extent } = recording
    const events = source ? recording.events : await Array.fromAsync(recording.events)
    const fold = await foldEvents(events, derivation, extent.base)
    reportProblems(recording, report)
    const known = [...fold.graph.objects()].map((state) => state.ref)
    const ref = findObject(kind, name, known)
    const about = await eventsAbout(ref, source ? source.log.read({ to: source.to }) : events)
    return { ref, fold, about, known }
  }
  const { ref, fold, about, known } = await withRecording(options, read, 'nearest')
  if (about.length === 0 && fold.graph.object(objectKey(ref))?.object === undefined) {
    report(`nothing is known about ${objectText(ref)}${suggestObjects(ref, known)}`)
    return { text: () => [], exitCode: exitCode.negative }
  }
  const explanation = explanationOf(ref, fold, about, await causesOf(ref, options))
  return { text: () => explanationText(explanation), json: explanation }
}

/** The events that changed the conditions of an object. Manifests have no history. */
async function causesOf(ref: ObjectRef, options: RecordingOptions): Promise<readonly Recorded[]> {
  if (options.file !== undefined) return []
  const { history } = await withRecording(options, (recording) => readHistory(recording, ref))
  return history.steps.map(({ cause }) => cause)
}

/** Finds an object by kind in any case and name; without a namespace, in `default` or cluster-scoped. */
function findObject(kind: string, name: string, known: readonly ObjectRef[]): ObjectRef {
  const parts = name.split('/')
  if (parts.length > 2 || parts.includes('')) {
    throw new UsageError(`${name} is not NAMESPACE/NAME`)
  }
  const [first = '', second] = parts
  const namespaces = second === undefined ? ['', 'default'] : [first]
  const isMeant = (ref: ObjectRef) =>
    ref.kind.toLowerCase() === kind.toLowerCase() &&
    ref.name === (second ?? first) &&
    namespaces.includes(ref.namespace)
  return known.find(isMeant) ?? { kind, namespace: namespaces.at(-1) ?? '', name: second ?? first }
}

async function eventsAbout(ref: ObjectRef, events: OpenRecording['events']): Promise<Recorded[]> {
  const found: Recorded[] = []
  for await (const recorded of events) if (isAbout(ref, recorded.event)) found.push(recorded)
  return found
}

function explanationText(explanation: ReturnType<typeof explanationOf>): string[] {
  const { object, generation, refused, status, events, reads, resources } = explanation
  const version = generation === undefined ? 'not in force' : `generation ${generation} in force`
  return [
    `${objectText(object)}: ${version}`,
    ...(refused?.problems ?? []).map(
      ({ path, message }) => `  refused: generation ${refused?.generation}: ${path}: ${message}`,
    ),
    section(
      'Conditions',
      placedConditions(status).map(({ place, condition }) => [
        place === '' ? 'object' : place,
        condition.type,
        condition.status,
        condition.reason,
        `since ${condition.lastTransitionTime}`,
        condition.message,
      ]),
    ),
    section(
      'Events',
      events.map(({ position, time, type, detail, about }) => [
        String(position),
        time,
        type,
        [about, detail].filter((part) => part).join(', '),
      ]),
    ),
    section('Read by its derivations', readRows(reads)),
    section(
      'Resources for the proxy',
      resources.map(({ resource, version: hash }) => [resource.key, hash]),
    ),
  ]
}

/** An object is one row of a stage, even if the stage reads both the object and what was derived from it. */
function readRows(reads: ReturnType<typeof explanationOf>['reads']): string[][] {
  const rows = reads.map(({ stage, text, state }) => [stage, text, state])
  return [...new Map(rows.map((row) => [row.join(' '), row])).values()]
}

function section(title: string, rows: readonly (readonly string[])[]): string {
  const indented = rows.map(([first = '', ...more]) => [`  ${first}`, ...more])
  return `\n${title}\n${rows.length === 0 ? '  none' : table(indented)}`
}
