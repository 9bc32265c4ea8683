/**
 * Judges changes that wait under `changeProtection`, on the replica that may write the log:
 *
 *   something waits ── no more came for a moment ──► judged ──► ChangePassed, ChangeHeld
 *   an object of a held change has an annotation ──► ChangeApproved, ChangeRejected
 *
 * Only these events change what is in force. A replica that dies meanwhile leaves everything waiting for the next.
 */
import {
  type ChangedRequests,
  changeApproved,
  changeHeld,
  changePassed,
  changeRejected,
  type JudgedObject,
  protectionSet,
  type SluiceEvent,
} from '../../../events/index.ts'
import { ModelCatalog } from '../../engines/messages/catalog/catalog.ts'
import { objectKey, objectText } from '../../ground/model/names.ts'
import type { ChangeGroup } from '../../past/what-if/groups.ts'
import type { Judge, Judgement, JudgeOptions, Verdict } from '../../past/what-if/judge.ts'
import type { Fold } from '../actors/fold.ts'
import { judgedVersion } from '../actors/judged-versions.ts'
import type { HeldChange } from '../actors/protected-changes.ts'
import { regexProblem } from './api-binding.ts'
import { DecisionLoop, type DecisionLoopOptions, settleMs } from './decision-loop.ts'
import type { JudgingOptions } from './parts.ts'

type ChangeJudgeOptions = JudgingOptions & DecisionLoopOptions

const maxGroups = 10
const maxExamples = 3
const maxText = 300
/** Maximum number of objects in one event. */
const maxObjects = 1_000

/** Annotations of a waiting object by which it is approved or rejected; the value is the position of the change. */
const annotations = { approve: 'sluice.dev/approve', reject: 'sluice.dev/reject' } as const
const reasonAnnotation = 'sluice.dev/reason'

/** A held change that an annotation of one of its objects approves or rejects. */
interface AnnotatedChange {
  readonly verb: keyof typeof annotations
  readonly position: number
  readonly author: string
  readonly reason: string
}

export class ChangeJudge {
  readonly #options: ChangeJudgeOptions
  #judge: Judge | undefined
  #records: JudgeOptions['records'] = () => []
  readonly #loop: DecisionLoop
  /** The revision of the changes for which those that are held were judged last. */
  #judgedRevision = -1

  constructor(options: ChangeJudgeOptions) {
    this.#options = options
    this.#loop = new DecisionLoop(options, {
      source: '/sluice/judge',
      subject: { kind: 'Desired', name: 'change' },
      verb: 'judged',
      repeatMs: settleMs,
      hasWork: () => this.#hasWork(),
      decide: (epoch) => this.#events(epoch),
    })
  }

  /** Called after each batch of events. */
  update(): void {
    this.#loop.update()
  }

  close(): void {
    this.#loop.close()
  }

  #hasWork(): boolean {
    const { fold, mode } = this.#options
    const { changes } = fold
    if (mode !== undefined && mode !== changes.mode) return true
    if (changes.waiting.size === 0) return false
    if (changes.waiting.values().some(({ held }) => held === undefined)) return true
    if (this.#marked().length > 0) return true
    const isOpen = changes.held.values().some(({ rejected }) => rejected === undefined)
    return isOpen && changes.revision !== this.#judgedRevision
  }

  async #events(epoch: number): Promise<SluiceEvent[]> {
    const { fold, mode } = this.#options
    if (mode !== undefined && mode !== fold.changes.mode) {
      return [this.#loop.event(protectionSet, epoch, { mode })]
    }
    const marked = this.#marked()
    if (marked.length > 0) return marked.map((one) => this.#decided(one, epoch))
    const { revision } = fold.changes
    const judgement = await this.#judgement()
    this.#judgedRevision = revision
    return [...this.#passed(judgement, epoch), ...this.#held(judgement, epoch)]
  }

  /** If changes cannot be judged, they are held, so that none takes effect without a judgement. */
  async #judgement(): Promise<Judgement> {
    const { fold, notify } = this.#options
    try {
      this.#records = (await this.#options.records?.()) ?? (() => [])
      this.#judge ??= await openJudge(this.#options, () => this.#records())
      return await this.#judge.judge(fold)
    } catch (error) {
      this.#judge = undefined
      notify('error', `changes cannot be judged: ${error instanceof Error ? error.stack : error}`)
      const message = `the change cannot be judged: ${String(error)}`
      const unmet = [{ condition: 'judged', message: cut(message) }]
      const verdict: Verdict = { isHeld: true, unmet, groups: [] }
      return { passed: [], verdict, held: [{ objects: unjudged(fold), verdict }] }
    }
  }

  #passed({ passed, verdict }: Judgement, epoch: number): SluiceEvent[] {
    if (passed.length === 0) return []
    const { unmet } = verdict
    if (unmet.length > 0) {
      this.#options.notify(
        'warn',
        `a change takes effect although it does not meet conditions: ${textOf(unmet)}`,
      )
    }
    const details = unmet.length > 0 ? verdictData(verdict) : {}
    return inEvents(passed).map((changes) =>
      this.#loop.event(changePassed, epoch, { changes, ...details }),
    )
  }

  #held({ held }: Judgement, epoch: number): SluiceEvent[] {
    return held.flatMap(({ objects, verdict }) => {
      if (objects.length === 0 || this.#isKnown(objects, verdict)) return []
      const names = objects.slice(0, maxExamples).map(objectText).join(', ')
      this.#options.notify('warn', `a change is held (${names}): ${textOf(verdict.unmet)}`)
      return inEvents(objects.map((one) => [one])).map((part) =>
        this.#loop.event(changeHeld, epoch, { objects: part.flat(), ...verdictData(verdict) }),
      )
    })
  }

  /** Whether the objects are already held because of the same conditions. */
  #isKnown(objects: readonly JudgedObject[], { unmet }: Verdict): boolean {
    const { waiting, held } = this.#options.fold.changes
    const positions = new Set(objects.map((one) => waiting.get(objectKey(one))?.held))
    const [position] = positions
    if (positions.size !== 1 || position === undefined) return false
    const members = waiting.values().filter((one) => one.held === position)
    const before = held.get(position)
    return members.toArray().length === objects.length && hasSameProblems(before, unmet)
  }

  /** The held changes that an annotation approves or rejects, each once. */
  #marked(): AnnotatedChange[] {
    const { waiting, held } = this.#options.fold.changes
    const found = new Map<number, AnnotatedChange>()
    for (const { newest, held: position } of waiting.values()) {
      if (position === undefined || held.get(position)?.rejected !== undefined) continue
      const { ref, state } = newest.context
      const given = state?.object?.metadata.annotations ?? {}
      for (const verb of ['approve', 'reject'] as const) {
        if (given[annotations[verb]] !== `${position}`) continue
        const author = `annotation of ${objectText(ref)}`
        const reason = given[reasonAnnotation] ?? `annotation ${annotations[verb]}`
        found.set(position, { verb, position, author, reason })
      }
    }
    return [...found.values()]
  }

  #decided({ verb, position: held, author, reason }: AnnotatedChange, epoch: number): SluiceEvent {
    const data = { held, reason: cut(reason), author }
    return verb === 'approve'
      ? this.#loop.event(changeApproved, epoch, data)
      : this.#loop.event(changeRejected, epoch, data)
  }
}

const loadJudge = async (): Promise<typeof Judge> =>
  (await import('../../past/what-if/judge.ts')).Judge

/** Loads the judge. `records` finds the newest recorded requests. */
export async function openJudge(
  { load = loadJudge, simulator, catalog = noPrices }: JudgingOptions,
  records: JudgeOptions['records'],
): Promise<Judge> {
  const Loaded = await load()
  return new Loaded({
    derivation: { checkRegex: regexProblem },
    simulator: simulator?.() ?? {},
    records,
    catalog,
    pause: () => new Promise((resolve) => setImmediate(resolve)),
  })
}

const noPrices = async () => new ModelCatalog([])

const cut = (text: string): string => (text.length <= maxText ? text : `${text.slice(0, maxText)}…`)

const textOf = (unmet: Verdict['unmet']): string => unmet.map(({ message }) => message).join('; ')

function hasSameProblems(before: HeldChange | undefined, unmet: Verdict['unmet']): boolean {
  const idsOf = (list: Verdict['unmet']) =>
    list.map(({ condition, gateway = '' }) => `${condition} ${gateway}`).join()
  return before !== undefined && idsOf(before.unmet) === idsOf(unmet)
}

function unjudged({ changes }: Fold): JudgedObject[] {
  return [...changes.waiting.values()].flatMap(({ newest, held }) =>
    held === undefined ? [judgedVersion(newest)] : [],
  )
}

const noSample = { requests: 0, refused: 0, undecided: 0, digest: '' }

function verdictData({ unmet, groups, sample = noSample }: Verdict) {
  return { unmet, groups: groups.slice(0, maxGroups).map(shortened), sample }
}

function shortened({ kinds, cause, from, to, count, examples }: ChangeGroup): ChangedRequests {
  return {
    kinds,
    cause: cut(cause),
    from: cut(from),
    to: cut(to),
    count,
    examples: examples
      .slice(0, maxExamples)
      .map(({ method, host, path, id }) => cut(`${method} ${host}${path} (${id})`)),
  }
}

/** Divides changes so that each event has a bounded number of objects. A larger change is divided itself. */
function inEvents(changes: readonly (readonly JudgedObject[])[]): (readonly JudgedObject[])[][] {
  const events: (readonly JudgedObject[])[][] = [[]]
  let count = 0
  for (const change of changes) {
    if (count > 0 && count + change.length > maxObjects) {
      events.push([])
      count = 0
    }
    events.at(-1)?.push(change)
    count += change.length
  }
  return events
}
