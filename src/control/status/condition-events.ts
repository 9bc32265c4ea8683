/** The Kubernetes Events that report how a status write changed the conditions of an object. */

import {
  type ConditionDifference,
  conditionDifferences,
  placedConditions,
} from '../../ground/model/placed-conditions.ts'
import type { Status } from '../desired/status-store.ts'
import type { LiveObject } from '../kube/index.ts'
import type { ObjectEvent } from './event-recorder.ts'
import { ownPart } from './merge.ts'

/** The conditions that are reported, and the action that each of them is about. */
const actions: Readonly<Record<string, string>> = {
  Accepted: 'Accept',
  Programmed: 'Program',
  ResolvedRefs: 'ResolveRefs',
  Attached: 'Attach',
  Conflicted: 'DetectConflicts',
  OverlappingTLSConfig: 'DetectConflicts',
  PartiallyInvalid: 'Accept',
  InsecureFrontendValidationMode: 'ValidateClients',
}

/** Conditions that should not be True. */
const negative = new Set([
  'Conflicted',
  'OverlappingTLSConfig',
  'PartiallyInvalid',
  'InsecureFrontendValidationMode',
])

/** Reasons of a condition that is True although a part of the object has no effect. */
const partialReasons = new Set(['PartiallyValid', 'ListenersNotValid'])

/**
 * Returns an event for each condition that got another status or reason. A new object that is in order, or
 * that waits for its proxies, has none, so that the creation of many objects does not cause many events.
 */
export function conditionEvents(object: LiveObject, after: Status | undefined): ObjectEvent[] {
  const [before, now] = [object.status, after].map((status) => placedConditions(ownPart(status)))
  return conditionDifferences(before ?? [], now ?? []).flatMap((difference) => {
    const { place, type, from, to } = difference
    const action = actions[type]
    if (action === undefined || to === undefined) return []
    if (from?.status === to.status && from.reason === to.reason) return []
    const isWarning = isForTheWorse(difference)
    if (from === undefined && !isWarning) return []
    const what = [type, 'is', to.status, ...(place === '' ? [] : ['for', place])].join(' ')
    return [
      {
        regarding: referenceTo(object),
        type: isWarning ? 'Warning' : 'Normal',
        action,
        reason: to.reason,
        note: to.message === '' ? what : `${what}: ${to.message}`,
      } as const,
    ]
  })
}

/** A Gateway that waits for its first proxies is Pending, which is no problem; one that has lost them is. */
function isForTheWorse({ type, from, to }: ConditionDifference): boolean {
  if (negative.has(type)) return to?.status === 'True'
  if (type === 'Attached' && to?.status === 'False') return true
  if (to?.status === 'True') return partialReasons.has(to.reason)
  return to?.status === 'False' && (to.reason !== 'Pending' || from?.status === 'True')
}

function referenceTo({ kind, path, namespace, name, uid }: LiveObject): ObjectEvent['regarding'] {
  const { group, version } = path
  const apiVersion = group === '' ? version : `${group}/${version}`
  return { apiVersion, kind, namespace, name, uid }
}
