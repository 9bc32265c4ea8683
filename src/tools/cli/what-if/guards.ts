/** Reports what changed guards would do, from the verdicts of the present guards in decision records. */

import { isObject } from '../../../engines/messages/json/json.ts'
import type { BackendAiConfig, GuardConfig } from '../../../gateway/backends/ai/policy/config.ts'
import { configDigest, policyText } from '../../../gateway/proxy/config/policies.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import type { PolicyResource } from '../../../ground/model/resources.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import type { InRange } from './budgets.ts'
import type { RecordSource } from './record-source.ts'
import type { States } from './state.ts'

/** Numbers of records, and of the requests that they stand for. */
interface Count {
  records: number
  /** Sum of the weights of the records. For an audit of N percent of the messages, each weight counts 100/N times. */
  represented: number
}

/** What a changed guard would have done with recorded messages. */
export interface GuardDifference {
  /** The object with the guard, such as `GatewayBackend default/chat`. */
  readonly policy: string
  /** Position, name and type, such as `request guard 0 (pii, regex)`. */
  readonly guard: string
  /** Messages that passed or were masked, and that it would refuse. */
  readonly refused: Readonly<Count>
  /** Messages that passed or were refused, and that it would mask. */
  readonly masked: Readonly<Count>
  /** Messages that it refused or masked, and would let pass. */
  readonly passed: Readonly<Count>
  /** What the records cannot show. */
  readonly limits: readonly string[]
}

type Effect = 'pass' | 'mask' | 'refuse'

/** A present guard, and the guard of the candidate with the same rules. */
interface GuardChange {
  readonly before: PolicyResource
  readonly phase: 'request' | 'response'
  readonly at: number
  readonly present: GuardConfig
  readonly next: GuardConfig | undefined
  readonly result: GuardDifference & Record<'refused' | 'masked' | 'passed', Count>
}

/** Reads the records once, if the candidate changes a guard whose verdicts they may have. */
export function guardDifferences(
  states: States,
  source: RecordSource,
  isIn: InRange,
): readonly GuardDifference[] {
  const present = policiesOf(states.present)
  const candidate = policiesOf(states.fold)
  const keys = new Set([...candidate.keys(), ...present.keys()])
  const compared = [...keys].map((key) => comparePolicies(present.get(key), candidate.get(key)))
  const changed = compared.flatMap((one) => one.changed)
  const limits = changed.length === 0 ? [] : countRecords(changed, source, isIn)
  const counted = changed.map(({ result }) => ({ ...result, limits }))
  return [...compared.flatMap((one) => one.added), ...counted]
}

/** Counts the verdicts of the records. Returns what the records cannot show. */
function countRecords(
  changed: readonly GuardChange[],
  source: RecordSource,
  isIn: InRange,
): string[] {
  const settings = new Set<string>()
  const byDigest = Map.groupBy(changed, ({ before }) => digestOf(before))
  for (const result of source.read()) {
    if (!('decision' in result) || !isIn(result.decision)) continue
    const { setting = 'errors' } = result.decision
    if (setting !== 'all') settings.add(setting)
    count(result.decision, byDigest)
  }
  if (settings.size === 0) return []
  return [`the records have only a part of the traffic (record: ${[...settings].join(', ')})`]
}

const digestOf = (policy: PolicyResource): string =>
  configDigest({ name: 'backend.ai', policies: [policy] })

function policiesOf(fold: States['fold']): Map<string, PolicyResource> {
  const found = new Map<string, PolicyResource>()
  for (const { resource } of fold.resources()) {
    if (resource.type !== 'policy' || resource.section !== 'backend') continue
    if (resource.field === 'ai') found.set(resource.key, resource)
  }
  return found
}

interface PolicyComparison {
  readonly changed: readonly GuardChange[]
  /** Guards for which the records have no verdicts. */
  readonly added: readonly GuardDifference[]
}

function comparePolicies(
  before: PolicyResource | undefined,
  after: PolicyResource | undefined,
): PolicyComparison {
  const nothing = { changed: [], added: [] }
  if (before?.config === after?.config) return nothing
  const [now, next] = [guardsOf(before), guardsOf(after)]
  const phases = (['request', 'response'] as const).map((phase) => {
    const others = [...next[phase].entries()]
    const changed = before === undefined ? [] : changedIn(before, phase, now[phase], others)
    const acting = after === undefined ? [] : others.filter(([, { isAudit }]) => isAudit !== true)
    const limits = ['the records have no verdicts of this guard; first apply it with action Audit']
    const added = acting.map(([at, guard]) => ({
      ...emptyDifference(after ?? before, phase, at, guard),
      limits,
    }))
    // A new guard may replace a removed one.
    const kept = changed.filter(({ next }) => next !== undefined || acting.length === 0)
    return { changed: kept, added }
  })
  return {
    changed: phases.flatMap((one) => one.changed),
    added: phases.flatMap((one) => one.added),
  }
}

/** Returns the guards that act differently or are gone. Removes guards with the same rules from `others`. */
function changedIn(
  before: PolicyResource,
  phase: 'request' | 'response',
  guards: readonly GuardConfig[],
  others: [number, GuardConfig][],
): GuardChange[] {
  return guards.flatMap((present, at) => {
    const same = others.findIndex(([, guard]) => rulesOf(guard) === rulesOf(present))
    const [pair] = same < 0 ? [] : others.splice(same, 1)
    const isChanged = pair === undefined ? present.isAudit !== true : !actsAlike(present, pair[1])
    if (!isChanged) return []
    const result = emptyDifference(before, phase, pair?.[0] ?? at, pair?.[1] ?? present)
    return [{ before, phase, at, present, next: pair?.[1], result }]
  })
}

function guardsOf(policy: PolicyResource | undefined) {
  const config = JSON.parse(policy?.config ?? 'null') as BackendAiConfig | null
  return { request: config?.requestGuards ?? [], response: config?.responseGuards ?? [] }
}

/** Returns the rules of a guard as text, without what it does with a match. */
function rulesOf(guard: GuardConfig): string {
  const { refusal: _, name: __, isAudit: ___, failsOpen: ____, percent: _____, ...rules } = guard
  const config = 'config' in rules && isObject(rules.config) ? rules.config : {}
  return canonicalJson({ ...rules, action: '', config: { ...config, rejects: false } } as never)
}

/** Whether the guard refuses what it could also mask. */
function refusesFindings(guard: GuardConfig): boolean {
  if (guard.type === 'regex') return guard.action === 'Reject'
  return 'config' in guard && isObject(guard.config) && guard.config.rejects === true
}

const actsAlike = (a: GuardConfig, b: GuardConfig): boolean =>
  (a.isAudit === true) === (b.isAudit === true) && refusesFindings(a) === refusesFindings(b)

function emptyDifference(
  policy: PolicyResource | undefined,
  phase: string,
  at: number,
  guard: GuardConfig,
): GuardChange['result'] {
  const type = guard.type === 'service' ? guard.service : guard.type
  const name = guard.name === undefined ? type : `${guard.name}, ${type}`
  const none = (): Count => ({ records: 0, represented: 0 })
  return {
    policy: policy === undefined ? '' : policyText(policy),
    guard: `${phase} guard ${at} (${name})`,
    refused: none(),
    masked: none(),
    passed: none(),
    limits: [],
  }
}

/** A result in a record, such as `request guard 0 (pii, regex): Audit, 2 matches of builtin Email`. */
const verdictPattern = /^(request|response) guard (\d+) \(.*?\): (Mask|Reject|Audit)(?:, (.*))?$/s

function count(
  { steps, weight = 1 }: RecordedDecision,
  byDigest: ReadonlyMap<string, readonly GuardChange[]>,
): void {
  for (const { step, config, notes } of steps) {
    if (step !== 'backend.ai') continue
    const changed = byDigest.get(config) ?? []
    for (const note of changed.length === 0 ? [] : notes) {
      const [, phase, at, action = '', detail = ''] = verdictPattern.exec(note) ?? []
      for (const one of changed) {
        if (one.phase !== phase || one.at !== Number(at)) continue
        add(one, effectOf(action, detail), weight)
      }
    }
  }
}

/** Returns the effect of a recorded verdict. Services record `would reject`; audits of patterns count as masks. */
const effectOf = (action: string, detail: string): Effect =>
  action === 'Reject' || detail.startsWith('would reject') ? 'refuse' : 'mask'

function add({ present, next, result }: GuardChange, recorded: Effect, weight: number): void {
  const effectWith = (guard: GuardConfig | undefined): Effect => {
    if (guard === undefined || guard.isAudit === true) return 'pass'
    if (refusesFindings(guard)) return 'refuse'
    return guard.type === 'regex' || refusesFindings(present) ? 'mask' : recorded
  }
  const [before, after] = [effectWith(present), effectWith(next)]
  if (before === after) return
  const counted = { pass: result.passed, mask: result.masked, refuse: result.refused }[after]
  counted.records++
  counted.represented += (weight * 100) / (present.percent ?? 100)
}

const messagesText = ({ records, represented }: Readonly<Count>): string => {
  const about = Math.round(represented)
  const weighed = about === records ? '' : ` (about ${about} by weight)`
  return `${records} recorded message${records === 1 ? '' : 's'}${weighed}`
}

/** The lines of a guard: what it would do, and what the records cannot show. */
export function guardLines({
  policy,
  guard,
  refused,
  masked,
  passed,
  limits,
}: GuardDifference): string[] {
  const effects = [
    ...(refused.records > 0 ? [`refuse ${messagesText(refused)}`] : []),
    ...(masked.records > 0 ? [`mask ${messagesText(masked)}`] : []),
    ...(passed.records > 0 ? [`no longer act on ${messagesText(passed)}`] : []),
  ]
  const would = effects.length === 0 ? 'changes no recorded verdict' : `would ${effects.join(', ')}`
  return [`${policy}: ${guard} ${would}`, ...limits.map((text) => `  not shown: ${text}`)]
}
