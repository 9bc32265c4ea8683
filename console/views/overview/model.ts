/** What the overview shows: problems first, then Gateways and proxies. */

import { problemsText } from '../../../src/desired/object-state.ts'
import { placedConditions } from '../../../src/explain/conditions.ts'
import { type Health, healthOf, worstOf } from '../../../src/explain/health.ts'
import { type ObjectKey, objectKey } from '../../../src/model/names.ts'
import type { Fold } from '../../../src/replay/index.ts'
import type { LoadedLog, Moment } from '../../worker/loaded-log.ts'

/** A condition, a refused version or a proxy that is not as it should be. */
export interface Problem {
  readonly health: Health
  /** Empty for a proxy. */
  readonly object: ObjectKey
  /** What is wrong, such as `ResolvedRefs is False (RefNotPermitted)`. */
  readonly title: string
  readonly place: string
  readonly message: string
  /** RFC 3339; undefined if the log does not have the event that caused it. */
  readonly since: string | undefined
  /** Position of the event that caused it. */
  readonly position: number | undefined
  /** Type of the condition, if the problem is one. */
  readonly condition: string | undefined
}

interface GatewaySummary {
  readonly object: ObjectKey
  readonly className: string
  readonly health: Health
  readonly addresses: readonly string[]
  readonly listeners: readonly {
    readonly name: string
    readonly port: number
    readonly protocol: string
    readonly routes: number
  }[]
}

interface ProxySummary {
  readonly name: string
  readonly gateway: string
  readonly address: string
  readonly version: string
  readonly state: string
  /** Position of the configuration in force; -1 before the first acknowledgement. */
  readonly watermark: number
  readonly rejections: readonly string[]
}

export function overviewModel({ fold, log, index }: Moment) {
  const problems = [
    ...conditionProblems(fold, log, index),
    ...refusedVersions(fold, log, index),
    ...proxyProblems(fold),
  ].sort((a, b) => rank(a.health) - rank(b.health) || (b.position ?? 0) - (a.position ?? 0))
  return {
    problems,
    gateways: gatewaySummaries(fold),
    proxies: proxySummaries(fold),
    counts: kindCounts(fold),
  }
}

const rank = (health: Health) => ['problem', 'warning', 'ok'].indexOf(health)

function conditionProblems(fold: Fold, log: LoadedLog, index: number): Problem[] {
  return fold.statuses().flatMap(([ref, status]) => {
    const bad = placedConditions(status).filter(({ condition }) => healthOf(condition) !== 'ok')
    if (bad.length === 0) return []
    const { steps } = log.conditionsOf(ref)
    return bad.map(({ place, condition }) => {
      const { type, status: value, reason, message } = condition
      const cause = steps.findLast(
        (step) =>
          step.cause <= index &&
          step.changes.some((change) => change.place === place && change.type === type),
      )?.cause
      return {
        health: healthOf(condition),
        object: objectKey(ref),
        title: `${type} is ${value} (${reason})`,
        place,
        message,
        since: condition.lastTransitionTime,
        position: cause === undefined ? undefined : log.events.positions[cause],
        condition: type,
      }
    })
  })
}

function refusedVersions(fold: Fold, log: LoadedLog, index: number): Problem[] {
  return [...fold.graph.objects()].flatMap(({ ref, refused, object }) => {
    if (refused === undefined) return []
    const key = objectKey(ref)
    const cause = log.events.about(key).findLast((event) => event <= index)
    const inForce =
      object === undefined ? 'No version is in force.' : 'The last valid version stays in force.'
    return [
      {
        health: 'problem' as const,
        object: key,
        title: `Generation ${refused.generation} was refused`,
        place: '',
        message: `${problemsText(refused)}. ${inForce}`,
        since: cause === undefined ? undefined : timeOf(log, cause),
        position: cause === undefined ? undefined : log.events.positions[cause],
        condition: undefined,
      },
    ]
  })
}

const timeOf = (log: LoadedLog, index: number) =>
  new Date(log.events.timesMs[index] ?? 0).toISOString()

function proxyProblems(fold: Fold): Problem[] {
  return proxySummaries(fold).flatMap(({ name, state, rejections }) => {
    const common = {
      object: '',
      place: '',
      since: undefined,
      position: undefined,
      condition: undefined,
    }
    const silent =
      state === 'silent'
        ? [
            {
              ...common,
              health: 'warning' as const,
              title: `Proxy ${name} is silent`,
              message: 'It has not acknowledged the configuration for too long.',
            },
          ]
        : []
    const rejected = rejections.map((message) => ({
      ...common,
      health: 'problem' as const,
      title: `Proxy ${name} rejects a resource`,
      message,
    }))
    return [...rejected, ...silent]
  })
}

function proxySummaries(fold: Fold): ProxySummary[] {
  return fold
    .proxies()
    .map(({ proxy, gateway, address, version, state, watermark, rejections }) => ({
      name: proxy,
      gateway: gateway ?? 'all Gateways',
      address: address ?? '',
      version: version ?? '',
      state,
      watermark,
      rejections: Object.entries(rejections).map(([key, { message }]) => `${key}: ${message}`),
    }))
}

interface GatewaySpec {
  readonly gatewayClassName?: string
  readonly listeners?: readonly {
    readonly name: string
    readonly port: number
    readonly protocol: string
  }[]
}

interface GatewayStatus {
  readonly addresses?: readonly { readonly value?: string }[]
  readonly listeners?: readonly { readonly name?: string; readonly attachedRoutes?: number }[]
}

/** Gateways of other controllers have no status of ours and are left out. */
function gatewaySummaries(fold: Fold): GatewaySummary[] {
  return fold.statuses().flatMap(([ref, decided]) => {
    if (ref.kind !== 'Gateway') return []
    const spec = (fold.graph.object(objectKey(ref))?.object?.spec ?? {}) as GatewaySpec
    const status = decided as GatewayStatus
    return [
      {
        object: objectKey(ref),
        className: spec.gatewayClassName ?? '',
        health: worstOf(placedConditions(decided).map(({ condition }) => healthOf(condition))),
        addresses: (status.addresses ?? []).map(({ value = '' }) => value),
        listeners: (spec.listeners ?? []).map(({ name, port, protocol }) => ({
          name,
          port,
          protocol,
          routes: status.listeners?.find((one) => one.name === name)?.attachedRoutes ?? 0,
        })),
      },
    ]
  })
}

function kindCounts(fold: Fold): readonly (readonly [kind: string, count: number])[] {
  const counts = new Map<string, number>()
  for (const { ref } of fold.graph.objects()) counts.set(ref.kind, (counts.get(ref.kind) ?? 0) + 1)
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}
