/** Counts what judged changes do to recorded requests, for each protected Gateway. */
import { createHash } from 'node:crypto'
import type { JudgedSample, UnmetCondition } from '../../../events/index.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import { CostTally } from './costs.ts'
import { type ChangeGroup, RequestTally } from './groups.ts'
import { type Protection, shareOf } from './protections.ts'
import { type ComparedRequest, exampleOf } from './recorded-requests.ts'
import { ReturningSteps } from './returning-steps.ts'

/** Records, and the number of requests that they stand for. */
interface Count {
  records: number
  requests: number
}

/** Characters that are collected before they are hashed, because each call of `update` has a fixed cost. */
const hashedAtOnce = 16_384

const newCount = (): Count => ({ records: 0, requests: 0 })

function addTo(count: Count, weight: number): void {
  count.records++
  count.requests += weight
}

export class TriedRequests {
  readonly #protections: ReadonlyMap<string, Protection>
  readonly #counts = new Map<
    string,
    Record<'total' | 'refused' | 'admitted' | 'undecided', Count>
  >()
  /** Names of the steps that refuse requests now that the change would admit, by Gateway. */
  readonly #admitting = new Map<string, Set<string>>()
  readonly #returning = new ReturningSteps()
  readonly #costs = new Map<string, CostTally>()
  readonly #tally = new RequestTally()
  readonly #hash = createHash('sha256')
  #unhashed = ''
  readonly #settings = new Set<string>()
  #from: string | undefined
  #to: string | undefined

  constructor(protections: ReadonlyMap<string, Protection>) {
    this.#protections = protections
    for (const gateway of protections.keys()) {
      this.#costs.set(gateway, new CostTally())
      this.#admitting.set(gateway, new Set())
      this.#counts.set(gateway, {
        total: newCount(),
        refused: newCount(),
        admitted: newCount(),
        undecided: newCount(),
      })
    }
  }

  add(record: RecordedDecision, compared: ComparedRequest): void {
    const { outcome, difference, admittedBy, cost } = compared
    const gateway = outcome.gateway ?? record.route.gateway ?? ''
    const counts = this.#counts.get(gateway)
    if (counts === undefined) return
    const { id, time, setting = 'errors', weight = 1 } = record
    addTo(counts.total, weight)
    this.#costs.get(gateway)?.add(cost, weight)
    this.#returning.add(gateway, record, compared)
    if (admittedBy !== undefined) {
      addTo(counts.admitted, weight)
      this.#admitting.get(gateway)?.add(admittedBy.step)
    }
    this.#unhashed += `${id} ${time}\n`
    if (this.#unhashed.length > hashedAtOnce) this.#hashRest()
    this.#settings.add(setting)
    if (this.#from === undefined || time < this.#from) this.#from = time
    if (this.#to === undefined || time > this.#to) this.#to = time
    if (difference === undefined) this.#tally.unchanged(weight)
    else if ('undecided' in difference) {
      addTo(counts.undecided, weight)
      this.#tally.undecided(difference.undecided, exampleOf(record), weight)
    } else {
      if (difference.change.kinds.includes('allow-to-deny')) addTo(counts.refused, weight)
      this.#tally.changed(difference.change, exampleOf(record), weight)
    }
  }

  #hashRest(): void {
    this.#hash.update(this.#unhashed)
    this.#unhashed = ''
  }

  problems(): UnmetCondition[] {
    const unmet: UnmetCondition[] = []
    for (const [gateway, { total, refused, admitted, undecided }] of this.#counts) {
      const protection = this.#protections.get(gateway)
      if (protection === undefined || total.records === 0) continue
      const { maxRefused, maxAdmitted, maxUndecided } = protection
      const add = (condition: string, count: Count, what: string, most: string, more = '') => {
        if (count.requests <= shareOf(most) * total.requests) return
        const share = `${Number(((count.requests / total.requests) * 100).toPrecision(2))}%`
        const isSample = total.requests !== total.records
        const all = `${Math.round(count.requests)} of ${Math.round(total.requests)}`
        const meant = isSample ? `, which stand for about ${all} (${share}),` : ` (${share})`
        const message = `${count.records} of ${total.records} recorded requests to Gateway ${gateway}${meant} ${what}; at most ${most} may${more}`
        unmet.push({ condition, gateway, message })
      }
      const returning = this.#returning.text(gateway)
      add('maxRefused', refused, 'would be refused or unrouted', maxRefused, returning)
      const steps = [...(this.#admitting.get(gateway) ?? [])].sort().join(', ')
      add('maxAdmitted', admitted, `that ${steps} refuses would be admitted`, maxAdmitted)
      add('maxUndecided', undecided, 'cannot be decided', maxUndecided)
      unmet.push(...this.#costProblems(gateway, protection))
    }
    return unmet
  }

  /** Requests whose cost is unknown count like undecided ones. */
  #costProblems(gateway: string, { maxCostIncrease, maxUndecided }: Protection): UnmetCondition[] {
    const tally = this.#costs.get(gateway)
    const costs = tally?.result()
    if (maxCostIncrease === undefined || tally === undefined || costs === undefined) return []
    const problem = (message: string) => [{ condition: 'maxCostIncrease', gateway, message }]
    if (tally.increase > shareOf(maxCostIncrease)) {
      const { before, after, requests } = costs
      return problem(
        `${requests} recorded requests to models of Gateway ${gateway} would cost ${after} USD instead of ${before} USD; at most ${maxCostIncrease} more is allowed`,
      )
    }
    if (tally.unknownShare <= shareOf(maxUndecided)) return []
    const why = costs.unknown.map(({ reason, count }) => `${count} because ${reason}`).join(', ')
    return problem(
      `the cost of ${costs.undecided} recorded requests to models of Gateway ${gateway} would be unknown (${why}); at most ${maxUndecided} may be`,
    )
  }

  groups(): readonly ChangeGroup[] {
    return this.#tally.result().groups
  }

  sample(): JudgedSample {
    const all = [...this.#counts.values()]
    const sum = (field: 'total' | 'refused' | 'undecided') =>
      all.reduce((total, one) => total + one[field].records, 0)
    const limits = this.#limits()
    this.#hashRest()
    return {
      requests: sum('total'),
      refused: sum('refused'),
      undecided: sum('undecided'),
      digest: this.#hash.copy().digest('hex'),
      ...(this.#from !== undefined && { from: this.#from }),
      ...(this.#to !== undefined && { to: this.#to }),
      ...(limits !== undefined && { limits }),
    }
  }

  #limits(): string | undefined {
    const settings = [...this.#settings].sort()
    if (settings.length === 0) return 'there are no recorded requests'
    if (settings.length === 1 && settings[0] === 'all') return undefined
    return `only a part of the traffic was recorded (--record ${settings.join(', ')})`
  }
}
