/** Compares two states of a fold: statuses and resources for proxies. */
import { hasSameContent } from '../../control/desired/same-content.ts'
import type { Condition } from '../../ground/model/conditions.ts'
import { compareText, type ObjectKey, objectKey } from '../../ground/model/names.ts'
import { placedConditions } from '../../ground/model/placed-conditions.ts'
import type { Fold } from '../replay/index.ts'

/** Status fields that differ from run to run. */
const volatileFields = new Set(['lastTransitionTime', 'observedGeneration'])

/** Status fields that depend on running proxies. */
const proxyFields = new Set(['addresses'])
/** Returns true for conditions that depend on running proxies. */
const isProxyCondition = (member: unknown) => (member as Condition | null)?.type === 'Programmed'

/** Copies a status without volatile fields and, if `withoutProxies` is set, without proxy-dependent parts. */
function comparable(status: unknown, withoutProxies: boolean): unknown {
  const text = JSON.stringify(status, (key, member: unknown) => {
    if (volatileFields.has(key) || (withoutProxies && proxyFields.has(key))) return undefined
    const isList = withoutProxies && key === 'conditions' && Array.isArray(member)
    return isList ? member.filter((condition) => !isProxyCondition(condition)) : member
  })
  return JSON.parse(text)
}

/** The data by which two states are compared. It does not change if the fold continues. */
export interface StateContent {
  readonly statuses: ReturnType<Fold['statuses']>
  readonly resources: ReturnType<Fold['resources']>
}

export const contentOf = (fold: Fold): StateContent => {
  return { statuses: fold.statuses(), resources: fold.resources() }
}

const statusesOf = ({ statuses }: StateContent, withoutProxies: boolean): Map<ObjectKey, unknown> =>
  new Map(
    statuses.map(([ref, status]) => [objectKey(ref), comparable(status, withoutProxies)] as const),
  )

/** Resources by key, without their age, which depends on what else was observed before. */
function resourcesOf({ resources }: StateContent): Map<string, unknown> {
  return new Map(
    resources.map(({ resource }) => {
      return [resource.key, { ...resource, created: undefined, order: undefined }]
    }),
  )
}

/** A status or resource that differs between two states. */
export interface Difference {
  readonly key: string
  /** Undefined if the key was added. */
  readonly before: unknown
  /** Undefined if the key was removed. */
  readonly after: unknown
}

function differences(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
): Difference[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .sort(compareText)
    .map((key) => ({ key, before: before.get(key), after: after.get(key) }))
    .filter((pair) => !hasSameContent(pair.before, pair.after))
}

const conditionFields = new Set(['conditions', 'parents', 'ancestors', 'listeners'])

/** Formats a status as one line per condition and field, so that statuses can be compared line by line. */
export function statusLines(status: unknown): string[] {
  if (status === undefined) return ['no status']
  const conditions = placedConditions(status).map(({ place, condition }) => {
    const { type, status: value, reason, message } = condition
    const text = `${type}=${value} ${reason}${message === '' ? '' : `: ${message}`}`
    return place === '' ? text : `${place}: ${text}`
  })
  const fields = Object.entries(status as object)
    .filter(([field]) => !conditionFields.has(field))
    .map(([field, value]) => `${field}: ${JSON.stringify(value)}`)
  return [...conditions, ...fields]
}

export interface StateDifferences {
  /** Statuses by the keys of their objects. */
  readonly statuses: readonly Difference[]
  /** Keys of resources. */
  readonly resources: {
    readonly added: readonly string[]
    readonly removed: readonly string[]
    readonly changed: readonly string[]
  }
}

/** Compares two states; `withoutProxies` ignores the parts of statuses that depend on running proxies. */
export function compareStates(
  old: StateContent,
  fresh: StateContent,
  withoutProxies: boolean,
): StateDifferences {
  const resources = differences(resourcesOf(old), resourcesOf(fresh))
  const changeOf = ({ before, after }: Difference) =>
    before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
  const keysOf = (change: string) =>
    resources.filter((one) => changeOf(one) === change).map(({ key }) => key)
  return {
    statuses: differences(statusesOf(old, withoutProxies), statusesOf(fresh, withoutProxies)),
    resources: { added: keysOf('added'), removed: keysOf('removed'), changed: keysOf('changed') },
  }
}
