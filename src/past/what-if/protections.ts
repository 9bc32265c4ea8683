/** The conditions of `changeProtection` that changes must meet, by Gateway. */
import type { ChangeProtectionSpec } from '../../control/api/gateway-parameters.ts'
import { parametersInForce } from '../../control/desired/parameters-in-force.ts'
import type { Fold } from '../replay/index.ts'

type Mode = NonNullable<ChangeProtectionSpec['mode']>

export interface Protection {
  readonly mode: Mode
  /** Maximum shares of the recorded requests, such as `0.1%`. */
  readonly maxRefused: string
  readonly maxAdmitted: string
  readonly maxUndecided: string
  /** Maximum increase of the cost of requests to models, such as `10%`; undefined if costs are not compared. */
  readonly maxCostIncrease: string | undefined
  readonly refusesRemovedProtections: boolean
  readonly refusesLostListeners: boolean
}

/** Modes by strictness. */
const strictness: Readonly<Record<Mode, number>> = { Off: 0, Warn: 1, Hold: 2 }

/** The share of a percentage, from 0 to 1. */
export const shareOf = (percent: string): number => Number(percent.slice(0, -1)) / 100

/** Says in which conditions a protection is weaker than it was; empty if in none. */
export function weakened(before: Protection, after: Protection): string[] {
  const found: string[] = []
  const compare = (field: string, from: string, to: string, isWeaker: boolean) => {
    if (isWeaker) found.push(`${field} ${from} becomes ${to}`)
  }
  compare('mode', before.mode, after.mode, strictness[after.mode] < strictness[before.mode])
  for (const share of ['maxRefused', 'maxAdmitted', 'maxUndecided'] as const) {
    compare(share, before[share], after[share], shareOf(after[share]) > shareOf(before[share]))
  }
  const [from, to] = [before.maxCostIncrease, after.maxCostIncrease]
  const isWeaker = from !== undefined && (to === undefined || shareOf(to) > shareOf(from))
  compare('maxCostIncrease', from ?? 'unset', to ?? 'unset', isWeaker)
  for (const [field, key] of switches) {
    compare(field, 'Refuse', 'Allow', before[key] && !after[key])
  }
  return found
}

const switches = [
  ['removedProtections', 'refusesRemovedProtections'],
  ['lostListeners', 'refusesLostListeners'],
] as const

function protectionOf({
  mode = 'Off',
  maxRefused = '0.1%',
  maxAdmitted = '0%',
  maxUndecided = '5%',
  maxCostIncrease,
  removedProtections = 'Refuse',
  lostListeners = 'Refuse',
}: ChangeProtectionSpec): Protection {
  return {
    mode,
    maxRefused,
    maxAdmitted,
    maxUndecided,
    maxCostIncrease,
    refusesRemovedProtections: removedProtections === 'Refuse',
    refusesLostListeners: lostListeners === 'Refuse',
  }
}

/** The protection of every Gateway, by `namespace/name`. */
export function protectionsOf({ graph, changes }: Fold): ReadonlyMap<string, Protection> {
  const unset = { mode: changes.mode }
  return new Map(
    Array.from(parametersInForce(graph, 'changeProtection'), ([gateway, spec]) => [
      gateway,
      protectionOf(spec ?? unset),
    ]),
  )
}
