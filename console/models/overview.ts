/** What the overview shows: problems first, then Gateways and proxies. */

import { compareText, type ObjectKey } from '../../src/ground/model/names.ts'
import { checkStatus, healthOf, type ObjectHealth, worstOf } from '../../src/past/explain/health.ts'
import type { LoadedLog, Moment } from '../log/loaded-log.ts'

/** A condition, a refused version or a proxy that is not as it should be. */
export interface Problem {
  readonly health: ObjectHealth
  /** Empty for a proxy. */
  readonly object: ObjectKey
  /** What is wrong, such as `ResolvedRefs is False (RefNotPermitted)`. */
  readonly title: string
  readonly place: string
  readonly message: string
  /** RFC 3339; undefined if the log does not have the event that caused it. */
  readonly since: string | undefined
  /** Positions of the events of which one caused it; mostly one, none if it is not known. */
  readonly positions: readonly number[]
  /** Type of the condition, if the problem is one. */
  readonly condition: string | undefined
}

interface GatewaySummary {
  readonly object: ObjectKey
  readonly className: string
  readonly health: ObjectHealth
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

export async function overviewModel(moment: Moment) {
  const problems = [
    ...(await conditionProblems(moment)),
    ...refusedVersions(moment),
    ...proxyProblems(moment),
  ].sort((a, b) => rank(a.health) - rank(b.health) || lastOf(b) - lastOf(a))
  return {
    problems,
    gateways: gatewaySummaries(moment),
    proxies: proxySummaries(moment),
    counts: kindCounts(moment),
  }
}

const lastOf = ({ positions }: Problem) => positions.at(-1) ?? 0
const rank = (health: ObjectHealth) => ['problem', 'warning', 'ok'].indexOf(health)

/** Number of changes of an object in which the last one of a condition is looked for. */
const searchedChanges = 4

async function conditionProblems({ statuses, log, histories }: Moment): Promise<Problem[]> {
  const checked = [...statuses.entries()].map(
    ([object, status]) => [object, checkStatus(status).bad] as const,
  )
  const all = checked.filter(([, bad]) => bad.length > 0)
  const found = await histories(
    all.map(([object]) => object),
    searchedChanges,
  )
  return all.flatMap(([object, bad]) => {
    const history = found.get(object)
    return bad.map(({ place, condition }) => {
      const { type, status: value, reason, message } = condition
      const causes = history?.causesOf(place, type) ?? []
      return {
        health: healthOf(condition),
        object,
        title: `${type} is ${value} (${reason})`,
        place,
        message,
        since: condition.lastTransitionTime,
        positions: causes.map((index) => log.events.positions[index] ?? 0),
        condition: type,
      }
    })
  })
}

function refusedVersions({ objects, log }: Moment): Problem[] {
  return [...objects.entries()].flatMap(([object, version]) => {
    const { applied, refused } = version
    if (refused === undefined) return []
    const refusal = log.refusal(version)
    const problems = refusal.problems.map(({ path, message }) => `${path}: ${message}`)
    const inForce =
      applied === undefined ? 'No version is in force.' : 'The last valid version stays in force.'
    return [
      {
        health: 'problem' as const,
        object,
        title: `Generation ${refusal.generation} was refused`,
        place: '',
        message: `${problems.join('; ')}. ${inForce}`,
        since: timeOf(log, refused),
        positions: [log.events.positions[refused] ?? 0],
        condition: undefined,
      },
    ]
  })
}

function timeOf({ events }: LoadedLog, index: number): string | undefined {
  const timeMs = events.timesMs[index] ?? Number.NaN
  return Number.isNaN(timeMs) ? undefined : new Date(timeMs).toISOString()
}

function proxyProblems(moment: Moment): Problem[] {
  return proxySummaries(moment).flatMap(({ name, state, rejections }) => {
    const common = {
      object: '',
      place: '',
      since: undefined,
      positions: [],
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

function proxySummaries({ proxies }: Moment): ProxySummary[] {
  return proxies.map(({ proxy, gateway, address, version, state, watermark, rejections }) => ({
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
function gatewaySummaries({ statuses, objects, log }: Moment): GatewaySummary[] {
  return [...statuses.entries()]
    .filter(([object]) => object.startsWith('Gateway/'))
    .map(([object, decided]) => {
      const version = objects.get(object)
      const spec = (version === undefined ? {} : (log.manifest(version).spec ?? {})) as GatewaySpec
      const status = decided as GatewayStatus
      return {
        object,
        className: spec.gatewayClassName ?? '',
        health: worstOf(checkStatus(decided).bad.map(({ condition }) => healthOf(condition))),
        addresses: (status.addresses ?? []).map(({ value = '' }) => value),
        listeners: (spec.listeners ?? []).map(({ name, port, protocol }) => ({
          name,
          port,
          protocol,
          routes: status.listeners?.find((one) => one.name === name)?.attachedRoutes ?? 0,
        })),
      }
    })
    .sort((a, b) => compareText(a.object, b.object))
}

function kindCounts({ objects }: Moment): readonly (readonly [kind: string, count: number])[] {
  const counts = new Map<string, number>()
  for (const [object] of objects.entries()) {
    const kind = object.slice(0, object.indexOf('/'))
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return [...counts].sort(([a], [b]) => compareText(a, b))
}
