/** What the page of an object shows. */
import { stringify } from 'yaml'
import { placedConditions } from '../../../src/explain/conditions.ts'
import { causeText } from '../../../src/explain/event-text.ts'
import { type Health, healthOf } from '../../../src/explain/health.ts'
import { explanationOf } from '../../../src/explain/object.ts'
import { type ObjectKey, objectKey, parseObjectKey } from '../../../src/model/names.ts'
import type { Moment } from '../../worker/loaded-log.ts'
import { healthOfObject } from '../objects/model.ts'
import { policyGroups } from './policies.ts'

interface ObjectParams {
  readonly object: ObjectKey
  /** The part that needs to look at every object; left out unless it is shown. */
  readonly withReaders?: boolean
}

interface ConditionRow {
  readonly place: string
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly health: Health
  readonly since: string
  /** The event that last changed the condition; undefined if the log does not have it. */
  readonly cause: Cause | undefined
}

interface Cause {
  readonly position: number
  readonly text: string
}

export function objectModel(moment: Moment, { object, withReaders = false }: ObjectParams) {
  const { fold, log, index } = moment
  const ref = parseObjectKey(object)
  const state = fold.graph.object(object)
  const eventIndexes = log.events.about(object)
  const shown = eventIndexes.filter((at) => at <= index)
  const { generation, refused, reads, resources } = explanationOf(ref, fold, [])
  return {
    object,
    exists: state !== undefined,
    generation,
    refused,
    ...healthOfObject(fold, object),
    manifest: state?.object === undefined ? undefined : manifestOf(state.object),
    conditions: conditionRows(moment, object),
    policies: policyGroups(fold, ref),
    reads: [...reads].sort((a, b) => Number(b.state === missing) - Number(a.state === missing)),
    readers: withReaders ? readersOf(moment, object) : [],
    events: shown.map((at) => log.events.row(at)),
    laterEvents: eventIndexes.length - shown.length,
    resources,
  }
}

const missing = 'does not exist'

function manifestOf({ apiVersion, kind, metadata, ...fields }: Readonly<Record<string, unknown>>) {
  return stringify({ apiVersion, kind, metadata, ...fields }, { lineWidth: 0 })
}

function conditionRows({ fold, log, index }: Moment, object: ObjectKey): ConditionRow[] {
  const ref = parseObjectKey(object)
  const { steps } = log.conditionsOf(ref)
  const known = steps.filter(({ cause }) => cause <= index)
  return placedConditions(fold.statusOf(ref)).map(({ place, condition }) => {
    const { type, status, reason, message, lastTransitionTime } = condition
    const step = known.findLast(({ changes }) =>
      changes.some((change) => change.place === place && change.type === type),
    )
    const cause = step && log.events.read(step.cause)
    return {
      place,
      type,
      status,
      reason,
      message,
      health: healthOf(condition),
      since: lastTransitionTime,
      cause: cause && { position: cause.position, text: causeText(cause.event) },
    }
  })
}

/** The objects whose derivations have read this one. */
function readersOf({ fold }: Moment, object: ObjectKey) {
  const wanted = `object:${object}`
  return [...fold.graph.objects()]
    .flatMap(({ ref }) => {
      const key = objectKey(ref)
      if (key === object) return []
      const stages = fold.graph
        .derivationsOf(ref)
        .filter(({ reads }) => reads.includes(wanted))
        .map(({ stage }) => stage)
      return stages.length === 0 ? [] : [{ object: key, stages }]
    })
    .sort((a, b) => (a.object < b.object ? -1 : 1))
}
