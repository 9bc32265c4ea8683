/** What the page of an object shows. */
import { stringify } from 'yaml'
import { type ObjectKey, objectKey, parseObjectKey } from '../../src/ground/model/names.ts'
import { placedConditions } from '../../src/ground/model/placed-conditions.ts'
import type { Resource } from '../../src/ground/model/resources.ts'
import { causeText } from '../../src/past/explain/event-text.ts'
import { healthOf, type ObjectHealth } from '../../src/past/explain/health.ts'
import { explanationOf } from '../../src/past/explain/object.ts'
import { objectRead } from '../../src/past/explain/read-text.ts'
import type { Moment } from '../log/loaded-log.ts'
import type { ObjectVersion } from '../log/segment.ts'
import { healthOfObject } from './objects.ts'
import { policyGroups } from './policies.ts'

interface ObjectParams {
  readonly object: ObjectKey
  /** What only derivations know; left out unless it is shown, because it is slow for earlier moments. */
  readonly derivations?: 'reads' | 'readers' | undefined
}

interface ConditionRow {
  readonly place: string
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly health: ObjectHealth
  readonly since: string
  /** The event that last changed the condition; undefined if the log does not have it. */
  /** The events of which one is the cause; mostly one, none if it is not known. */
  readonly causes: readonly Cause[]
}

interface Cause {
  readonly position: number
  readonly text: string
}

/** Maximum number of events about the object that are shown. */
const maxEvents = 500

export async function objectModel(moment: Moment, { object, derivations }: ObjectParams) {
  const { log, index } = moment
  const version = moment.objects.get(object)
  const about = log.events.about(object)
  const upToNow = about.filter((at) => at <= index)
  const shown = upToNow.slice(-maxEvents)
  await log.events.load(shown)
  return {
    object,
    exists: version !== undefined,
    generation: version?.applied === undefined ? undefined : version.generation,
    refused: version?.refused === undefined ? undefined : refusalOf(moment, version),
    ...healthOfObject(moment, object),
    manifest: version?.applied === undefined ? undefined : manifestOf(log.manifest(version)),
    conditions: await conditionRows(moment, object),
    /** Position before which the causes of conditions may not be known; 0 if they are. */
    knownFrom: log.events.positions[moment.knownFrom - 1] ?? 0,
    policies: policyGroups(moment, parseObjectKey(object)),
    reads: derivations === 'reads' ? readsOf(moment, object) : [],
    readers: derivations === 'readers' ? readersOf(moment, object) : [],
    events: shown.map((at) => log.events.row(at)),
    earlierEvents: upToNow.length - shown.length,
    laterEvents: about.length - upToNow.length,
    resources: [...moment.resources.entries()]
      .map(([, one]) => one)
      .filter(({ resource }) => ownerOf(resource) === object),
  }
}

function refusalOf({ log }: Moment, version: ObjectVersion) {
  const { generation, problems } = log.refusal(version)
  return { generation, problems }
}

const missing = 'does not exist'

function manifestOf({ apiVersion, kind, metadata, ...fields }: Readonly<Record<string, unknown>>) {
  return stringify({ apiVersion, kind, metadata, ...fields }, { lineWidth: 0 })
}

async function conditionRows(moment: Moment, object: ObjectKey): Promise<ConditionRow[]> {
  const { events } = moment.log
  const history = (await moment.histories([object])).get(object)
  const placed = placedConditions(moment.statuses.get(object))
  const causes = placed.map(
    ({ place, condition: { type } }) => history?.causesOf(place, type) ?? [],
  )
  await events.load(causes.flat())
  return placed.map(({ place, condition }, at) => {
    const { type, status, reason, message, lastTransitionTime } = condition
    return {
      place,
      type,
      status,
      reason,
      message,
      health: healthOf(condition),
      since: lastTransitionTime,
      causes: (causes[at] ?? []).map((index) => {
        const { position, event } = events.read(index)
        return { position, text: causeText(event) }
      }),
    }
  })
}

function readsOf(moment: Moment, object: ObjectKey) {
  const { reads } = explanationOf(parseObjectKey(object), moment.fold(), [])
  return reads
    .map((read) => ({ ...read, object: objectRead(read.key) }))
    .sort((a, b) => Number(b.state === missing) - Number(a.state === missing))
}

/** The object that a resource was derived for. */
function ownerOf(resource: Resource): ObjectKey | undefined {
  switch (resource.type) {
    case 'listener':
      return objectKey(resource.owner)
    case 'route':
    case 'stream':
      return objectKey(resource.route)
    case 'policy': {
      const { policy, target } = resource
      return objectKey(target.inline === true ? target : { kind: 'GatewayPolicy', ...policy })
    }
    case 'secret':
      return undefined
    default:
      return objectKey({ ...resource, kind: ownerKinds[resource.type] })
  }
}

const ownerKinds = {
  backend: 'GatewayBackend',
  service: 'Service',
  workload: 'EndpointSlice',
  pool: 'InferencePool',
  pod: 'Pod',
} as const

/** The objects whose derivations have read this one. */
function readersOf(moment: Moment, object: ObjectKey) {
  const fold = moment.fold()
  return [...fold.graph.objects()]
    .flatMap(({ ref }) => {
      const key = objectKey(ref)
      if (key === object) return []
      const stages = fold.graph
        .derivationsOf(ref)
        .filter(({ reads }) => reads.some((read) => objectRead(read) === object))
        .map(({ stage }) => stage)
      return stages.length === 0 ? [] : [{ object: key, stages }]
    })
    .sort((a, b) => (a.object < b.object ? -1 : 1))
}
