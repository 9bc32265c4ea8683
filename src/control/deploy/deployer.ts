/**
 * Keeps the objects that each Gateway needs in the cluster.
 *
 * ```
 *   the plan or an object has changed ──► marked ──► compared ──► equal: nothing to do
 *                                           ▲            │
 *                             after a while └──┐         └──► dry run ──► written, reported
 *                                              └──────────── refused: reported, nothing is changed
 * ```
 *
 * Nothing is done about a Gateway that is gone: it owns its objects, so the cluster removes them.
 */

import type { ObjectKey } from '../../ground/model/names.ts'
import type { Deployment, ProxyEnvironment } from '../desired/deployment/plan.ts'
import { renderProxy } from '../desired/deployment/render.ts'
import { type KubeClient, KubeError } from '../kube/index.ts'
import { Applier, ConflictingObjectError, NotWritingError, type ObjectChange } from './apply.ts'
import type { OwnedObjects } from './owned-objects.ts'

interface DeployerOptions {
  readonly client: KubeClient
  readonly owned: OwnedObjects
  /** Returns the deployment of a Gateway. */
  wanted(key: ObjectKey): Deployment | undefined
  /** Returns the failure that was last reported, or undefined if there is none. */
  problem(key: ObjectKey): string | undefined
  environment(): ProxyEnvironment
  /** Whether the Gateway of this uid is in the cluster and not being deleted. */
  isThere(key: ObjectKey, uid: string): boolean
  isWriting(): boolean
  /** Called when all objects are in place, after `changes`. */
  onApplied(key: ObjectKey, uid: string, changes: readonly ObjectChange[]): void
  onFailed(key: ObjectKey, uid: string, message: string): void
  /** Called when a request has failed and will be retried. */
  onRetry(message: string): void
}

/** Quiet time before a Gateway is reconciled: one edit often changes several things. */
const settleMs = 50
const retryMs = 1_000
/** Wait after a refusal, which only a change of something else can resolve. */
const refusedMs = 30_000
const maxParallelGateways = 4
const tickMs = 20
/** Maximum number of repairs of a Gateway in `repairWindowMs`; more mean that another writer undoes them. */
const maxRepairs = 5
const repairWindowMs = 60_000
/** How long nothing is repaired after more than `maxRepairs` repairs. */
const conflictPauseMs = 30_000

export class Deployer {
  readonly #options: DeployerOptions
  readonly #applier: Applier
  /** Gateway -> when it may be reconciled, by `performance.now()`. */
  readonly #due = new Map<ObjectKey, number>()
  readonly #busy = new Map<ObjectKey, Promise<void>>()
  /** Gateway -> the last internal error of the API server, and how many times in a row it occurred. */
  readonly #internalErrors = new Map<ObjectKey, { readonly text: string; readonly times: number }>()
  /** Gateway -> the deployment that was last applied, and the times of its repairs. */
  readonly #repairs = new Map<ObjectKey, { readonly deployment: Deployment; times: number[] }>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: DeployerOptions) {
    this.#options = options
    this.#applier = new Applier({ ...options, isWriting: () => this.#mayWrite })
  }

  /** Schedules a Gateway whose plan or whose objects may have changed. */
  mark(key: ObjectKey): void {
    this.#postpone(key, settleMs, true)
  }

  /** Drops scheduled work. Called when this replica stops writing. */
  clear(): void {
    this.#due.clear()
    this.#repairs.clear()
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

  #postpone(key: ObjectKey, waitMs: number, isChange = false): void {
    if (!this.#mayWrite) return
    const at = performance.now() + waitMs
    const known = this.#due.get(key)
    // A change does not wait for a retry, and a retry does not delay a change.
    if (known === undefined || (isChange && at < known)) this.#due.set(key, at)
    this.#timer ??= setTimeout(() => this.#tick(), tickMs)
  }

  #tick(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const [key, due] of this.#due) {
      if (this.#busy.size >= maxParallelGateways) break
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
      this.#repairs.delete(key)
      this.#internalErrors.delete(key)
      return
    }
    if (deployment.state === 'held') return
    const uid = deployment.state === 'wanted' ? deployment.plan.uid : deployment.uid
    // The cluster removes the objects of a deleted Gateway; they must not be created again.
    if (!this.#options.isThere(key, uid)) return
    const pauseMs = this.#conflictPause(key, deployment)
    if (pauseMs > 0) {
      this.#postpone(key, pauseMs)
      return
    }
    try {
      const changes = await this.#put(deployment)
      this.#internalErrors.delete(key)
      if (changes.length > 0) this.#noteRepair(key, deployment)
      if (changes.length > 0 || problem(key) !== undefined) onApplied(key, uid, changes)
    } catch (error) {
      this.#fail(key, uid, error)
    }
  }

  #put(deployment: Exclude<Deployment, { state: 'held' }>): Promise<ObjectChange[]> {
    if (deployment.state === 'none') return this.#applier.remove(deployment.uid)
    const rendered = renderProxy(deployment.plan, this.#options.environment())
    // If a plan cannot be rendered, nothing is changed, and the Gateway's conditions say why.
    return rendered.ok ? this.#applier.apply(deployment.plan, rendered.value) : Promise.resolve([])
  }

  /** Returns how long to wait if another writer undoes every repair, otherwise 0. */
  #conflictPause(key: ObjectKey, deployment: Deployment): number {
    const known = this.#repairs.get(key)
    if (known?.deployment !== deployment) return 0
    const now = performance.now()
    known.times = known.times.filter((time) => now - time < repairWindowMs)
    if (known.times.length <= maxRepairs) return 0
    return Math.max(0, (known.times.at(-1) ?? now) + conflictPauseMs - now)
  }

  #noteRepair(key: ObjectKey, deployment: Deployment): void {
    const known = this.#repairs.get(key)
    if (known?.deployment === deployment) known.times.push(performance.now())
    else this.#repairs.set(key, { deployment, times: [] })
  }

  #isLasting(key: ObjectKey, error: unknown, text: string): boolean {
    if (!(error instanceof KubeError) || error.status !== 500) return false
    const known = this.#internalErrors.get(key)
    const times = known?.text === text ? known.times + 1 : 1
    this.#internalErrors.set(key, { text, times })
    return times >= maxEqualResponses
  }

  #fail(key: ObjectKey, uid: string, error: unknown): void {
    const { problem, onFailed, onRetry } = this.#options
    if (error instanceof NotWritingError) return
    const text = error instanceof Error ? error.message : String(error)
    if (isPassing(error) && !this.#isLasting(key, error, text)) {
      onRetry(`${key}: ${text}`)
      this.#postpone(key, retryMs)
      return
    }
    if (problem(key) !== text) onFailed(key, uid, text)
    this.#postpone(key, refusedMs)
  }
}

/**
 * Number of equal 500 responses in a row that count as a refusal. The API server also responds 500 to objects
 * that it can never accept, such as those whose fields have types other than the schema's.
 */
const maxEqualResponses = 3

function isPassing(error: unknown): boolean {
  if (error instanceof ConflictingObjectError) return error.isPassing
  return error instanceof KubeError && error.isTransient
}
