/**
 * Keeps what each Gateway needs in the cluster.
 *
 * ```
 *   wanted otherwise, or an object has changed ──► marked ──► compared ──► right: nothing
 *                                                    ▲                │
 *                                  after a while ────┘      tried, written, told ──► or refused: told,
 *                                                                                  what runs is left
 * ```
 *
 * A Gateway that is gone is nothing to do: its objects have it as owner, and the cluster removes them.
 */
import { type Deployment, type ProxyEnvironment, renderProxy } from '../desired/deployment/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { ObjectKey } from '../model/names.ts'
import {
  Applier,
  type Change,
  InTheWayError,
  NotWritingError,
  RefusedObjectError,
} from './apply.ts'
import type { OwnedObjects } from './owned-objects.ts'

interface DeployerOptions {
  readonly client: KubeClient
  readonly owned: OwnedObjects
  /** What is wanted for a Gateway. */
  wanted(key: ObjectKey): Deployment | undefined
  /** What was last told to stand in the way; undefined where nothing does. */
  problem(key: ObjectKey): string | undefined
  environment(): ProxyEnvironment
  /** Is the Gateway of this uid in the cluster, and not being deleted? */
  isThere(key: ObjectKey, uid: string): boolean
  isWriting(): boolean
  /** Everything is in place, after `changes`. */
  onApplied(key: ObjectKey, uid: string, changes: readonly Change[]): void
  onFailed(key: ObjectKey, uid: string, message: string): void
  /** The API server did not answer as it should; it is asked again. */
  onTrouble(message: string): void
  readonly timing?: Partial<DeployerTiming>
}

/** All in milliseconds. */
interface DeployerTiming {
  /** Quiet time before Gateways are looked at: one edit often changes several things. */
  readonly settleMs: number
  readonly retryMs: number
  /** Wait after a refusal that only a change can turn, or an administrator elsewhere. */
  readonly refusedMs: number
  /** So long is what somebody else keeps changing left as it is. */
  readonly strifeMs: number
}

const defaultTiming: DeployerTiming = {
  settleMs: 50,
  retryMs: 1_000,
  refusedMs: 30_000,
  strifeMs: 30_000,
}

const gatewaysAtOnce = 4
const tickMs = 20
/** Writes to one Gateway's objects within a minute that are healing; more is strife. */
const mostHeals = 5
const healWindowMs = 60_000

export class Deployer {
  readonly #options: DeployerOptions
  readonly #timing: DeployerTiming
  readonly #applier: Applier
  /** Gateway -> when it may be looked at, by `performance.now()`. */
  readonly #due = new Map<ObjectKey, number>()
  readonly #busy = new Map<ObjectKey, Promise<void>>()
  /** Gateway -> what was last put in place, and when since then it had to be again. */
  /** Gateway -> the internal error that the API server last answered, and how many times in turn. */
  readonly #internalErrors = new Map<ObjectKey, { readonly text: string; readonly times: number }>()
  readonly #heals = new Map<ObjectKey, { readonly deployment: Deployment; times: number[] }>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: DeployerOptions) {
    this.#options = options
    this.#timing = { ...defaultTiming, ...options.timing }
    this.#applier = new Applier({ ...options, isWriting: () => this.#mayWrite })
  }

  /** What is wanted for a Gateway, or what is there, may be other than before. */
  mark(key: ObjectKey): void {
    this.#postpone(key, this.#timing.settleMs, true)
  }

  /** Another replica writes now. */
  clear(): void {
    this.#due.clear()
    this.#heals.clear()
    this.#applier.forget()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.clear()
    clearTimeout(this.#timer)
    await Promise.all(this.#busy.values())
  }

  get #mayWrite(): boolean {
    return !this.#isClosed && this.#options.isWriting()
  }

  #postpone(key: ObjectKey, waitMs: number, isNews = false): void {
    if (!this.#mayWrite) return
    const at = performance.now() + waitMs
    const known = this.#due.get(key)
    // News does not wait for a retry, and a retry does not put news off.
    if (known === undefined || (isNews && at < known)) this.#due.set(key, at)
    this.#timer ??= setTimeout(() => this.#tick(), tickMs)
  }

  #tick(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const [key, due] of this.#due) {
      if (this.#busy.size >= gatewaysAtOnce) break
      if (due > now || this.#busy.has(key)) continue
      this.#due.delete(key)
      const work = this.#reconcile(key).finally(() => this.#busy.delete(key))
      this.#busy.set(key, work)
    }
    if (this.#due.size > 0 && !this.#isClosed) {
      this.#timer ??= setTimeout(() => this.#tick(), tickMs)
    }
  }

  async #reconcile(key: ObjectKey): Promise<void> {
    const { owned, wanted, problem, onApplied } = this.#options
    const deployment = wanted(key)
    if (!this.#mayWrite || !owned.isListed) return
    if (deployment === undefined) {
      this.#heals.delete(key)
      this.#internalErrors.delete(key)
      return
    }
    if (deployment.state === 'held') return
    const uid = deployment.state === 'wanted' ? deployment.plan.uid : deployment.uid
    // What belongs to a Gateway that goes is collected, and must not be made again.
    if (!this.#options.isThere(key, uid)) return
    const strife = this.#strife(key, deployment)
    if (strife > 0) {
      this.#postpone(key, strife)
      return
    }
    try {
      const changes = await this.#put(deployment)
      this.#internalErrors.delete(key)
      if (changes.length > 0) this.#noteHeal(key, deployment)
      if (changes.length > 0 || problem(key) !== undefined) onApplied(key, uid, changes)
    } catch (error) {
      this.#fail(key, uid, error)
    }
  }

  #put(deployment: Exclude<Deployment, { state: 'held' }>): Promise<Change[]> {
    if (deployment.state === 'none') return this.#applier.remove(deployment.uid)
    const rendered = renderProxy(deployment.plan, this.#options.environment())
    // What cannot be rendered is held, and its Gateway says so.
    return rendered.ok ? this.#applier.apply(deployment.plan, rendered.value) : Promise.resolve([])
  }

  /** How long to wait, where somebody else undoes every write. */
  #strife(key: ObjectKey, deployment: Deployment): number {
    const known = this.#heals.get(key)
    if (known?.deployment !== deployment) return 0
    const now = performance.now()
    known.times = known.times.filter((time) => now - time < healWindowMs)
    if (known.times.length <= mostHeals) return 0
    return Math.max(0, (known.times.at(-1) ?? now) + this.#timing.strifeMs - now)
  }

  #noteHeal(key: ObjectKey, deployment: Deployment): void {
    const known = this.#heals.get(key)
    if (known?.deployment === deployment) known.times.push(performance.now())
    else this.#heals.set(key, { deployment, times: [] })
  }

  #isLasting(key: ObjectKey, error: unknown, text: string): boolean {
    if (!(error instanceof RefusedObjectError) || error.error.status !== 500) return false
    const known = this.#internalErrors.get(key)
    const times = known?.text === text ? known.times + 1 : 1
    this.#internalErrors.set(key, { text, times })
    return times >= lastingAnswers
  }

  #fail(key: ObjectKey, uid: string, error: unknown): void {
    const { problem, onFailed, onTrouble } = this.#options
    const { retryMs, refusedMs } = this.#timing
    if (error instanceof NotWritingError) return
    const text = error instanceof Error ? error.message : String(error)
    if (isPassing(error) && !this.#isLasting(key, error, text)) {
      onTrouble(`${key}: ${text}`)
      this.#postpone(key, retryMs)
      return
    }
    if (problem(key) !== text) onFailed(key, uid, text)
    this.#postpone(key, refusedMs)
  }
}

/**
 * The API server answers 500 also to what it can never take: an applied object whose fields have other
 * types than the schema's is one. What it says three times over is about the object.
 */
const lastingAnswers = 3

function isPassing(error: unknown): boolean {
  if (error instanceof InTheWayError) return error.isPassing
  return error instanceof RefusedObjectError && error.error.isPassing
}
