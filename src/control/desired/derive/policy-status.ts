/** GatewayPolicy: derives the conditions of the object and of each Gateway that it affects. */

import { controllerName, gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { gatewayRef, objectKey } from '../../../ground/model/names.ts'
import { conditionFalse, conditionTrue, joinOwn, notOwn } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import type { Finding } from './finding.ts'
import { conflictsOf, type FieldClaim } from './policy-conflicts.ts'
import { type ResolvedTarget, withReachByPolicy } from './policy-targets.ts'
import { rejectedConditions } from './rejected.ts'

/** What the stage `policy` derives for the policy. */
export interface PolicyView {
  readonly accepted: DecidedCondition
  readonly targets: readonly ResolvedTarget[]
  readonly claims: readonly FieldClaim[]
}

/**
 * `working`: does any field of the policy work as intended? Then the policy is accepted, and the message
 * lists the fields that do not. Requests that a security field among them applies to are rejected.
 */
export function acceptedCondition(
  working: boolean,
  findings: readonly Finding[],
  generation: number,
): DecidedCondition {
  const has = (severity: Finding['severity']) => findings.some((f) => f.severity === severity)
  const messages = findings.map((finding) => finding.message)
  const accept = (reason: string) =>
    conditionTrue('Accepted', reason, generation, messages.join('; '))
  const { own } = joinOwn(findings.filter(({ severity }) => severity !== 'note'))
  if (!has('closed') && !has('ineffective')) return accept('Valid')
  if (!working) return conditionFalse('Accepted', 'Invalid', generation, messages.join('; '), own)
  if (has('closed')) messages.push(partiallyValidNote)
  return { ...accept('PartiallyValid'), own }
}

const partiallyValidNote = 'protections named here stay closed, and the rest of the policy works'

const maxNamed = 8

/** Joins the first sentences, and adds how many more there are. */
function shorten(sentences: readonly string[]): string {
  const rest = sentences.length - maxNamed
  const more = rest > 0 ? `; and ${rest} more` : ''
  return `${sentences.slice(0, maxNamed).join('; ')}${more}`
}

/** The condition `Attached` for the given targets, with the reasons of Gateway API's GEP-713. */
function attachedCondition(
  targets: readonly ResolvedTarget[],
  { accepted, claims }: PolicyView,
  read: Reader,
): DecidedCondition {
  const generation = accepted.observedGeneration
  const found = targets.flatMap(({ problem }) => (problem === undefined ? [] : [problem]))
  const problems = [...new Set(found.map(({ message }) => message))]
  if (problems.length > 0) {
    return conditionFalse('Attached', 'Pending', generation, shorten(problems), joinOwn(found).own)
  }
  if (accepted.status !== 'True') {
    const message = 'the policy is not accepted'
    return conditionFalse('Attached', 'Pending', generation, message, notOwn.own)
  }
  const places = new Set(targets.map(({ target }) => objectKey(target)))
  const here = claims.filter(({ target }) => places.has(target))
  const { overridden, combined } = conflictsOf(here, read)
  if (overridden.length > 0 && overridden.length === here.length) {
    return conditionFalse('Attached', 'Overridden', generation, shorten(overridden), notOwn.own)
  }
  const shared = [...overridden, ...combined]
  return shared.length > 0
    ? conditionTrue('Attached', 'Merged', generation, shorten(shared))
    : conditionTrue('Attached', 'Attached', generation)
}

const maxAncestors = 16

/** One entry per Gateway, and one for targets that could not be attached (Gateway API, GEP-713). */
function ancestorsOf(
  view: PolicyView,
  read: Reader,
  rejected: readonly DecidedCondition[],
  kind: string,
): unknown[] {
  const { targets, accepted } = view
  const gateways = [...new Set(targets.flatMap((target) => target.gateways))].sort()
  const entries: unknown[] = gateways.map((gateway) => {
    const here = targets.filter((target) => target.gateways.includes(gateway))
    return {
      ancestorRef: { group: gatewayGroup, ...gatewayRef(gateway) },
      controllerName,
      conditions: [accepted, attachedCondition(here, view, read), ...rejected],
    }
  })
  const unattached = targets.filter(({ problem }) => problem !== undefined)
  const summarised =
    unattached.length === 0 ? [] : [accepted, attachedCondition(unattached, view, read)]
  const maxShown = maxAncestors - (unattached.length > 0 || entries.length > maxAncestors ? 1 : 0)
  const omitted = entries.slice(maxShown).length
  if (omitted > 0) {
    const message = `${omitted} more ancestors are not shown`
    const generation = accepted.observedGeneration
    summarised.push(conditionTrue('StatusSummarized', 'StatusSummary', generation, message))
  }
  if (summarised.length === 0) return entries
  return [...entries.slice(0, maxShown), summary(summarised, kind)]
}

/** The entry for conditions that belong to no Gateway, or to Gateways that do not fit into the list. */
function summary(conditions: readonly DecidedCondition[], kind: string): unknown {
  const ancestorRef = { group: ownGroup, kind, name: 'StatusSummary' }
  return { ancestorRef, controllerName, conditions }
}

/** Statuses of one kind, from what another stage has derived. */
const statusStage = (name: string, kind: 'GatewayPolicy' | 'GatewayBudget', of: string): Stage => ({
  name,
  kinds: [kind],
  derive(self: ObjectState, read: Reader): Derived {
    const first = read.value<PolicyView>(of, self.ref)
    if (first === undefined) return {}
    const targets = first.targets.map((target) => withReachByPolicy(target, read))
    const view = { ...first, targets }
    const attached = attachedCondition(view.targets, view, read)
    const rejected = rejectedConditions(self.ref, view.accepted.observedGeneration, read)
    return {
      status: {
        conditions: [view.accepted, attached, ...rejected],
        ancestors: ancestorsOf(view, read, rejected, kind),
      },
    }
  },
})

export const policyStatusStage = statusStage('policy-status', 'GatewayPolicy', 'policy')
export const budgetStatusStage = statusStage('budget-status', 'GatewayBudget', 'budget')
