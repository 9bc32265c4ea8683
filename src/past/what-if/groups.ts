/** Groups requests whose outcome changes under the candidate, by what changes and by its cause. */

import type { CostChange } from './costs.ts'

/** What can change, as `--fail-on` names it. */
export const changeKinds = [
  'deny-to-allow',
  'allow-to-deny',
  'route',
  'backend',
  'provider',
  'status',
  'verdict',
  'limit',
  'guard',
  'condition',
  'resource',
  'undecided',
] as const
export type ChangeKind = (typeof changeKinds)[number]

/** A request of a group, to look up with `sluice decisions --id` or `sluice explain request --id`. */
export interface Example {
  readonly id: string
  readonly time: string
  readonly method: string
  readonly host: string
  readonly path: string
}

/** A request before and after the change. */
export interface RequestChange {
  readonly kinds: readonly ChangeKind[]
  readonly cause: string
  readonly from: string
  readonly to: string
}

export interface ChangeGroup extends RequestChange {
  readonly count: number
  /** About how many requests the records of the group stand for; omitted if each stands for itself. */
  readonly represented?: number
  readonly examples: readonly Example[]
}

interface UndecidedGroup {
  readonly reason: string
  readonly count: number
  readonly represented?: number
  readonly examples: readonly Example[]
}

export interface RequestChanges {
  /** What requests to models cost; omitted if there are none, or if nothing can change. */
  readonly costs?: CostChange

  readonly total: number
  readonly unchanged: number
  readonly changed: number
  readonly undecided: number
  /** About how many requests these records stand for; omitted if each stands for itself. */
  readonly represented?: {
    readonly total: number
    readonly changed: number
    readonly undecided: number
  }
  /** The worst kinds first, then the largest groups. */
  readonly groups: readonly ChangeGroup[]
  readonly undecidedGroups: readonly UndecidedGroup[]
  /** Omitted if no records were given. */
  readonly records?: ComparedRecords
}

/** Which part of the traffic was compared. */
interface ComparedRecords {
  /** Settings `record` under which the records were made, such as `errors`. Old records have none. */
  readonly settings: readonly string[]
  /** Whether requests may have passed without a record, so that the change was not tested with them. */
  readonly isPartial: boolean
  /**
   * A change that affects a smaller share of the requests than this, from 0 to 1, may not show: the probability that
   * it does is less than 95 %. Set if the records are a sample of all requests.
   */
  readonly leastVisible?: number
}

const maxExamples = 5
/** Maximum number of groups. Requests of further groups are counted in one group, which bounds the memory. */
const maxGroups = 1_000
const otherGroups = `they are in none of the first ${maxGroups} groups`

/** By the rule of three: if none of n requests changes, at most 3/n of all do, with a confidence of 95 %. */
const ruleOfThree = 3

interface Members {
  count: number
  represented: number
  readonly examples: Example[]
}

/** Counts members of groups, and keeps the first few of each. */
class Groups<Group> {
  readonly #groups = new Map<string, Members & { readonly group: Group }>()
  readonly #others: Group

  constructor(others: Group) {
    this.#others = others
  }

  add(group: Group, example: Example, weight: number): void {
    const key = JSON.stringify(group)
    const known = this.#groups.get(key)
    if (known === undefined && this.#groups.size >= maxGroups && group !== this.#others) {
      this.add(this.#others, example, weight)
      return
    }
    const found = known ?? { group, count: 0, represented: 0, examples: [] }
    if (known === undefined) this.#groups.set(key, found)
    found.count++
    found.represented += weight
    if (found.examples.length < maxExamples) found.examples.push(example)
  }

  list(): (Group & Omit<Members, 'represented'> & { readonly represented?: number })[] {
    return [...this.#groups.values()]
      .sort((a, b) => b.represented - a.represented)
      .map(({ group, count, represented, examples }) => {
        const about = Math.round(represented)
        return { ...group, count, ...(about !== count && { represented: about }), examples }
      })
  }
}

const rankOf = ({ kinds }: RequestChange): number =>
  Math.min(...kinds.map((kind) => changeKinds.indexOf(kind)))

/** Counts requests as they are compared. */
export class RequestTally {
  #total = 0
  #changed = 0
  #undecided = 0
  /** Sums of weights. */
  readonly #represented = { total: 0, changed: 0, undecided: 0 }
  #squares = 0
  readonly #changes = new Groups<RequestChange>({
    kinds: [],
    cause: otherGroups,
    from: 'various',
    to: 'various',
  })
  readonly #settings = new Set<string | undefined>()
  readonly #reasons = new Groups<{ readonly reason: string }>({ reason: otherGroups })

  /** Notes the setting under which a record was made. */
  madeUnder(setting: string | undefined): void {
    this.#settings.add(setting)
  }

  /** The weight of a record is the number of requests that it stands for. */
  unchanged(weight = 1): void {
    this.#count(weight)
  }

  changed(change: RequestChange, example: Example, weight = 1): void {
    this.#count(weight)
    this.#changed++
    this.#represented.changed += weight
    this.#changes.add(change, example, weight)
  }

  undecided(reason: string, example: Example, weight = 1): void {
    this.#count(weight)
    this.#undecided++
    this.#represented.undecided += weight
    this.#reasons.add({ reason }, example, weight)
  }

  #count(weight: number): void {
    this.#total++
    this.#represented.total += weight
    this.#squares += weight * weight
  }

  /** The result for a folder of records, which may have none. */
  resultOfRecords(): RequestChanges {
    const settings = [...this.#settings].filter((setting) => setting !== undefined).sort()
    const isPartial = this.#settings.size !== 1 || !this.#settings.has('all')
    const leastVisible = this.#leastVisible()
    return {
      ...this.result(),
      records: { settings, isPartial, ...(leastVisible !== undefined && { leastVisible }) },
    }
  }

  #leastVisible(): number | undefined {
    const settings = [...this.#settings]
    const isSample = !this.#settings.has(undefined) && !this.#settings.has('errors')
    if (!isSample || settings.length === 0 || settings.every((one) => one === 'all'))
      return undefined
    // Records of different weights show as much as this number of records of the same weight.
    const records = this.#represented.total ** 2 / this.#squares
    return Math.min(1, ruleOfThree / records)
  }

  result(): RequestChanges {
    const [total, changed, undecided] = [this.#total, this.#changed, this.#undecided]
    const { total: all, changed: some, undecided: others } = this.#represented
    const represented = {
      total: Math.round(all),
      changed: Math.round(some),
      undecided: Math.round(others),
    }
    return {
      total,
      unchanged: total - changed - undecided,
      changed,
      undecided,
      ...(represented.total !== total && { represented }),
      groups: this.#changes.list().sort((a, b) => rankOf(a) - rankOf(b)),
      undecidedGroups: this.#reasons.list(),
    }
  }
}
