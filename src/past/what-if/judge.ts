/**
 * Judges changes that wait under `changeProtection`. Recorded requests are simulated under the state in force and
 * under the one with the changes. If a condition is not met, the changes are divided, so that only those wait
 * that do not meet it:
 *
 *   all together ── meets the conditions ──► all pass
 *        └─ does not ──► first half, then second half after what has passed of the first … ──► single parts are held
 *
 * What passes was therefore judged as it will be in force.
 */
import {
  createEvent,
  type JudgedObject,
  type JudgedSample,
  pinLifted,
  type SluiceEvent,
  type UnmetCondition,
} from '../../../events/index.ts'
import { judgedVersion } from '../../control/actors/judged-versions.ts'
import type { ModelCatalog } from '../../engines/messages/catalog/catalog.ts'
import type { ObjectKey } from '../../ground/model/names.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import { compareStates, contentOf, type StateDifferences } from '../explain/differences.ts'
import { createFold, type DerivationOptions, type Fold } from '../replay/index.ts'
import type { Simulation, SimulatorOptions } from '../simulate/index.ts'
import { openPriceList, type PriceList } from './costs.ts'
import type { ChangeGroup } from './groups.ts'
import { independentParts } from './parts.ts'
import { type Protection, protectionsOf } from './protections.ts'
import { hasOwnProxies, RecordedRequests } from './recorded-requests.ts'
import type { ComparedStates, ObjectChange } from './states.ts'
import { structureProblems } from './structure.ts'
import { TriedRequests } from './tried-requests.ts'

export interface JudgeOptions {
  readonly derivation: DerivationOptions
  readonly simulator: Pick<SimulatorOptions, 'digestKey' | 'settings'>
  /** The newest recorded requests. */
  readonly records: () => Iterable<RecordedDecision>
  /** Loads the prices of models. */
  readonly catalog: () => Promise<ModelCatalog>
  /** Called often; lets other work of the process run. */
  readonly pause: () => Promise<void>
}

/** What is known about some changes. */
export interface Verdict {
  readonly isHeld: boolean
  readonly unmet: readonly UnmetCondition[]
  readonly groups: readonly ChangeGroup[]
  /** Omitted if no request can be affected. */
  readonly sample?: JudgedSample
}

export interface Judgement {
  /** The changes that pass, and the verdict about all of them together. */
  readonly passed: readonly (readonly JudgedObject[])[]
  readonly verdict: Verdict
  /** Each part that must wait, and the verdict about it. */
  readonly held: readonly { readonly objects: readonly JudgedObject[]; readonly verdict: Verdict }[]
}

/** The judgement of an event that is not recorded yet. */
export interface EventJudgement {
  readonly verdict: Verdict
  /** The state after the event; valid until the next judgement. */
  readonly after: Fold
  /** Whether any Gateway has the mode Hold. */
  readonly hasHold: boolean
}

type Part = readonly ObjectKey[]

/** Maximum number of simulations of all requests in one judgement. After that, the rest is held as one change. */
const maxTrials = 24
/** Number of requests between two pauses. */
const pauseEvery = 64

const passes: Verdict = { isHeld: false, unmet: [], groups: [] }

export class Judge {
  readonly #options: JudgeOptions
  /** Kept from one judgement to the next, so that only what differs is derived. */
  #present: Fold | undefined
  #candidate: Fold | undefined

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /** Judges an event as if it were recorded next. Other changes that wait are left out. The state is not changed. */
  async judgeNext(fold: Fold, key: ObjectKey, event: SluiceEvent): Promise<EventJudgement> {
    const snapshot = fold.snapshot()
    const present = createFold(this.#options.derivation, snapshot, this.#present)
    this.#present = present
    const after = createFold(this.#options.derivation, snapshot, this.#candidate)
    this.#candidate = after
    const isKnown = present.graph.object(key) !== undefined
    const protections = activeProtections(present)
    for (const state of [present, after]) if (state.pin !== undefined) applyNext(state, liftedEvent)
    applyNext(after, event)
    after.putInForce([key])
    const isGone = after.graph.object(key) === undefined
    const change = isGone ? 'removed' : isKnown ? 'changed' : 'added'
    const states = { present, fold: after, changes: new Map([[key, change]] as const) }
    const trial = new Trial(this.#options, present, protections, () => after)
    const hasHold = [...protections.values()].some(({ mode }) => mode === 'Hold')
    return { verdict: await trial.verdictOn(states), after, hasHold }
  }

  /** Judges everything that waits in a state and was not rejected. The state is not changed. */
  judge(fold: Fold): Promise<Judgement> {
    const snapshot = fold.snapshot()
    const before = createFold(this.#options.derivation, snapshot, this.#present)
    this.#present = before
    // The judgement ignores a pin: changes that pass take effect once it is lifted.
    if (before.pin !== undefined) applyNext(before, liftedEvent)
    const { waiting } = before.changes
    const isOpen = (held: number | undefined) =>
      held === undefined || before.changes.held.get(held)?.rejected === undefined
    const open = new Map([...waiting].filter(([, { held }]) => isOpen(held)))
    const parts = independentParts(
      new Map(
        Array.from(open, ([key, { newest }]) => [
          key,
          [before.graph.object(key)?.object?.spec, newest.context.state?.object?.spec],
        ]),
      ),
    )
    // What was never held comes first, so that it does not wait for what was.
    const isHeld = (part: Part) => part.some((key) => waiting.get(key)?.held !== undefined)
    const ordered = [...parts.filter((part) => !isHeld(part)), ...parts.filter(isHeld)]
    return new Trial(this.#options, before, activeProtections(before), (passed) => {
      const candidate = createFold(this.#options.derivation, snapshot, this.#candidate)
      this.#candidate = candidate
      if (candidate.pin !== undefined) applyNext(candidate, liftedEvent)
      candidate.putInForce(passed.flat())
      return candidate
    }).run(ordered)
  }
}

const activeProtections = (fold: Fold): ReadonlyMap<string, Protection> =>
  new Map([...protectionsOf(fold)].filter(([, { mode }]) => mode !== 'Off'))

const writer = { source: '/sluice/judge', epoch: 0, time: '1970-01-01T00:00:00.000Z' }

const liftedEvent = createEvent(pinLifted, writer, {
  id: 'judge',
  subject: '',
  data: { reason: '', author: '' },
})

function applyNext(fold: Fold, event: SluiceEvent): void {
  fold.apply({ position: fold.position + 1, event: { ...event, epoch: fold.epoch } })
}

/** The versions of objects that wait. */
function judgedObjects(part: Part, { changes }: Fold): JudgedObject[] {
  return part.flatMap((key) => {
    const version = changes.waiting.get(key)
    return version === undefined ? [] : [judgedVersion(version.newest)]
  })
}

/** A record, and its simulation of the state in force if it is known. */
interface KnownResult {
  readonly record: RecordedDecision
  readonly now: Simulation | undefined
}

class Trial {
  readonly #options: JudgeOptions
  readonly #present: Fold
  readonly #protections: ReadonlyMap<string, Protection>
  readonly #after: (passed: readonly Part[]) => Fold
  #passed: Part[] = []
  #verdict: Verdict = passes
  readonly #held: { readonly part: Part; readonly verdict: Verdict }[] = []
  #trials = 0
  #hasMoreTrials = false
  /** The records and their simulations of the state in force, which are the same in each trial. */
  #known: readonly KnownResult[] | undefined

  constructor(
    options: JudgeOptions,
    present: Fold,
    protections: ReadonlyMap<string, Protection>,
    after: (passed: readonly Part[]) => Fold,
  ) {
    this.#options = options
    this.#present = present
    this.#protections = protections
    this.#after = after
  }

  async run(parts: readonly Part[]): Promise<Judgement> {
    this.#hasMoreTrials = parts.length > 1
    if (this.#protections.size === 0) this.#passed = [...parts]
    else if (parts.length > 0) await this.#judge(parts)
    const objects = (part: Part) => judgedObjects(part, this.#present)
    return {
      passed: this.#passed.map(objects),
      verdict: this.#verdict,
      held: this.#held.map(({ part, verdict }) => ({ objects: objects(part), verdict })),
    }
  }

  async #judge(parts: readonly Part[]): Promise<void> {
    const together = [...this.#passed, ...parts]
    const verdict = await this.#verdictOf(together)
    if (!verdict.isHeld) {
      this.#passed = together
      this.#verdict = verdict
    } else if (parts.length === 1 || this.#trials >= maxTrials) {
      this.#held.push({ part: parts.flat(), verdict })
    } else {
      const half = Math.ceil(parts.length / 2)
      await this.#judge(parts.slice(0, half))
      await this.#judge(parts.slice(half))
    }
  }

  #verdictOf(parts: readonly Part[]): Promise<Verdict> {
    this.#trials++
    return this.verdictOn(this.#statesWith(parts))
  }

  async verdictOn(states: ComparedStates): Promise<Verdict> {
    const [before, after] = [contentOf(states.present), contentOf(states.fold)]
    // Statuses are of no interest here, and comparing them takes long.
    const { resources } = compareStates(
      { ...before, statuses: [] },
      { ...after, statuses: [] },
      true,
    )
    const structure = structureProblems(states, this.#protections)
    const isChanged = Object.values(resources).some(({ length }) => length > 0)
    if (!isChanged) return this.#decide(structure, [], undefined)
    const tried = new TriedRequests(this.#protections)
    await this.#compare(states, resources, tried, await this.#prices())
    return this.#decide([...structure, ...tried.problems()], tried.groups(), tried.sample())
  }

  #statesWith(parts: readonly Part[]): ComparedStates {
    const present = this.#present
    const fold = this.#after(parts)
    const changes = new Map<ObjectKey, ObjectChange>()
    for (const key of parts.flat()) {
      const newest = present.changes.waiting.get(key)?.newest
      const isPresent = present.graph.object(key) !== undefined
      const change = isPresent ? 'changed' : 'added'
      changes.set(key, newest?.context.state === undefined ? 'removed' : change)
    }
    return { present, fold, changes }
  }

  /** Undefined if no Gateway compares costs. */
  async #prices(): Promise<PriceList | undefined> {
    const compares = [...this.#protections.values()].some(
      (one) => one.maxCostIncrease !== undefined,
    )
    return compares ? openPriceList(await this.#options.catalog()) : undefined
  }

  async #compare(
    states: ComparedStates,
    resources: StateDifferences['resources'],
    tried: TriedRequests,
    prices: PriceList | undefined,
  ): Promise<void> {
    const { simulator, pause } = this.#options
    const known = this.#known
    const kept: KnownResult[] = []
    let requests: RecordedRequests | undefined
    let count = 0
    try {
      for (const { record, now } of known ?? this.#unknownResults()) {
        if (++count % pauseEvery === 0) await pause()
        if (!this.#isProtected(record)) continue
        requests ??= new RecordedRequests(states, resources, { simulator, prices })
        const pending = requests.compare(record, now)
        const compared = pending instanceof Promise ? await pending : pending
        tried.add(record, compared)
        if (this.#hasMoreTrials && known === undefined) kept.push({ record, now: compared.now })
      }
    } finally {
      requests?.close()
    }
    if (this.#hasMoreTrials) this.#known ??= kept
  }

  *#unknownResults(): Generator<KnownResult> {
    for (const record of this.#options.records()) yield { record, now: undefined }
  }

  /** In a cluster, a request without a Gateway was refused already, and belongs to none. */
  #isProtected({ route: { gateway } }: RecordedDecision): boolean {
    return !hasOwnProxies(this.#present) || this.#protections.has(gateway ?? '')
  }

  #decide(
    unmet: readonly UnmetCondition[],
    groups: readonly ChangeGroup[],
    sample: JudgedSample | undefined,
  ): Verdict {
    const isHeld = unmet.some(({ gateway = '' }) => this.#protections.get(gateway)?.mode === 'Hold')
    return { isHeld, unmet, groups, ...(sample && { sample }) }
  }
}
