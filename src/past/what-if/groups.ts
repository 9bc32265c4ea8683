/** Groups requests whose outcome changes under the candidate, by what changes and by its cause. */

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
  readonly examples: readonly Example[]
}

interface UndecidedGroup {
  readonly reason: string
  readonly count: number
  readonly examples: readonly Example[]
}

export interface RequestChanges {
  readonly total: number
  readonly unchanged: number
  readonly changed: number
  readonly undecided: number
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
}

const maxExamples = 5
/** Maximum number of groups. Requests of further groups are counted in one group, which bounds the memory. */
const maxGroups = 1_000
const otherGroups = `they are in none of the first ${maxGroups} groups`

interface Members {
  count: number
  readonly examples: Example[]
}

/** Counts members of groups, and keeps the first few of each. */
class Groups<Group> {
  readonly #groups = new Map<string, Members & { readonly group: Group }>()
  readonly #others: Group

  constructor(others: Group) {
    this.#others = others
  }

  add(group: Group, example: Example): void {
    const key = JSON.stringify(group)
    const known = this.#groups.get(key)
    if (known === undefined && this.#groups.size >= maxGroups && group !== this.#others) {
      this.add(this.#others, example)
      return
    }
    const found = known ?? { group, count: 0, examples: [] }
    if (known === undefined) this.#groups.set(key, found)
    found.count++
    if (found.examples.length < maxExamples) found.examples.push(example)
  }

  list(): (Group & Members)[] {
    return [...this.#groups.values()].map(({ group, count, examples }) => {
      return { ...group, count, examples }
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

  unchanged(count = 1): void {
    this.#total += count
  }

  changed(change: RequestChange, example: Example): void {
    this.#total++
    this.#changed++
    this.#changes.add(change, example)
  }

  undecided(reason: string, example: Example): void {
    this.#total++
    this.#undecided++
    this.#reasons.add({ reason }, example)
  }

  /** The result for a folder of records, which may have none. */
  resultOfRecords(): RequestChanges {
    const settings = [...this.#settings].filter((setting) => setting !== undefined).sort()
    const isPartial = this.#settings.size !== 1 || !this.#settings.has('all')
    return { ...this.result(), records: { settings, isPartial } }
  }

  result(): RequestChanges {
    const [total, changed, undecided] = [this.#total, this.#changed, this.#undecided]
    const byCount = (a: Members, b: Members) => b.count - a.count
    return {
      total,
      unchanged: total - changed - undecided,
      changed,
      undecided,
      groups: this.#changes.list().sort((a, b) => rankOf(a) - rankOf(b) || byCount(a, b)),
      undecidedGroups: this.#reasons.list().sort(byCount),
    }
  }
}
