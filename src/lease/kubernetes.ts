/**
 * A Lease object (coordination.k8s.io/v1) as the lease of the controller's replicas.
 *
 * ```
 *   watching ── nobody holds it, or the record stood still for its whole duration ──► taking
 *   taking ── the server took our version ──► holding ── renewed in time ──► holding
 *      │ somebody was faster (409)              │ not renewed in time, or somebody else's
 *      ▼                                        ▼
 *   watching ◄──────────────────────────────────┘
 * ```
 *
 * Clocks of different machines are never compared: a candidate measures by its own clock how long
 * the record has not changed. `leaseTransitions` is the epoch: it rises with every change of holder.
 */
import { type KubeClient, KubeError, type OwnerReference, ownedBy } from '../kube/index.ts'
import type { Lease, LeaseOptions } from './lease.ts'
import { type Moment, Term } from './term.ts'

export interface KubernetesLeaseOptions extends LeaseOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly name: string
  readonly owner?: OwnerReference | undefined
}

interface LeaseSpec {
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  readonly acquireTime?: string
  readonly renewTime?: string
  readonly leaseTransitions?: number
}

interface LeaseObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: { readonly name: string; readonly resourceVersion?: string }
  readonly spec?: LeaseSpec
}

export class KubernetesLease implements Lease {
  readonly #options: KubernetesLeaseOptions
  readonly #term: Term
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #wake: (() => void) | undefined
  #expiry: NodeJS.Timeout | undefined
  /** The record as it was seen last, and since when it has not changed. */
  #seen: { readonly version: string; readonly at: Moment } | undefined
  #record: LeaseObject | undefined
  /** Before this moment the lease is left to others. */
  #abstainUntil = 0

  constructor(options: KubernetesLeaseOptions) {
    this.#options = options
    this.#term = new Term(options.durationMs)
  }

  get holder(): string | undefined {
    return this.#record?.spec?.holderIdentity
  }

  start(): void {
    this.#running = this.#run()
  }

  epoch(): number | undefined {
    return this.#term.epoch
  }

  async resign(reason: string): Promise<void> {
    if (this.#term.granted === undefined) return
    this.#abstainUntil = performance.now() + this.#options.durationMs
    this.#lose(reason)
    await this.#release()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#wake?.()
    await this.#running
    const held = this.#term.granted !== undefined
    clearTimeout(this.#expiry)
    this.#term.end()
    if (held) await this.#release()
  }

  async #run(): Promise<void> {
    const { durationMs, onProblem } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        await this.#round()
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        if (!signal.aborted) onProblem(`the lease cannot be read or written: ${message}`)
      }
      // Replicas that started together should not ask together.
      await this.#wait((durationMs / 5) * (0.8 + Math.random() * 0.4))
    }
  }

  async #round(): Promise<void> {
    const { identity, isFit } = this.#options
    const record = await this.#read()
    if (this.#term.granted !== undefined && this.#term.leftMs <= 0) {
      this.#lose('it was not renewed in time')
    }
    if (record?.spec?.holderIdentity === identity && this.#term.granted !== undefined) {
      await this.#renew(record)
      return
    }
    if (this.#term.granted !== undefined) this.#lose('another replica holds the lease')
    if (performance.now() < this.#abstainUntil || !isFit()) return
    if (record === undefined || this.#isFree(record)) await this.#take(record)
  }

  async #read(): Promise<LeaseObject | undefined> {
    try {
      const record = await this.#options.client.get<LeaseObject>(this.#path, this.#limit)
      this.#note(record)
      return record
    } catch (error) {
      if (!(error instanceof KubeError) || !error.isNotFound) throw error
      this.#record = undefined
      return undefined
    }
  }

  #note(record: LeaseObject): void {
    this.#record = record
    const version = record.metadata.resourceVersion ?? ''
    if (this.#seen?.version !== version) this.#seen = { version, at: Term.now() }
  }

  #isFree({ spec }: LeaseObject): boolean {
    // Ours by name, but given up: a new term needs a new epoch.
    if (!spec?.holderIdentity || spec.holderIdentity === this.#options.identity) return true
    const seconds = spec.leaseDurationSeconds ?? this.#options.durationMs / 1_000
    const stoodStill = performance.now() - (this.#seen?.at.monotonic ?? performance.now())
    return stoodStill > seconds * 1_000
  }

  async #take(before: LeaseObject | undefined): Promise<void> {
    const { highestEpoch, onAcquired } = this.#options
    const epoch = Math.max(before?.spec?.leaseTransitions ?? 0, highestEpoch()) + 1
    const time = microTime()
    const sent = Term.now()
    const spec = this.#spec({ acquireTime: time, renewTime: time, leaseTransitions: epoch })
    try {
      this.#note(await this.#write(before, spec))
    } catch (error) {
      // Another replica was faster.
      if (error instanceof KubeError && error.isConflict) return
      throw error
    }
    this.#term.extend(epoch, sent)
    this.#watchExpiry()
    onAcquired(epoch)
  }

  async #renew(record: LeaseObject): Promise<void> {
    const epoch = this.#term.granted ?? 0
    const sent = Term.now()
    const { acquireTime = microTime() } = record.spec ?? {}
    const renewed = { acquireTime, renewTime: microTime(), leaseTransitions: epoch }
    try {
      this.#note(await this.#write(record, this.#spec(renewed)))
    } catch (error) {
      if (!(error instanceof KubeError) || !error.isConflict) throw error
      const now = await this.#read()
      if (now?.spec?.holderIdentity !== this.#options.identity) {
        this.#lose('another replica holds the lease')
      }
      return
    }
    // It may have run out, or been given up, while the answer was on its way.
    if (this.#term.epoch !== epoch) return
    this.#term.extend(epoch, sent)
    this.#watchExpiry()
  }

  #write(before: LeaseObject | undefined, spec: LeaseSpec): Promise<LeaseObject> {
    const { client, namespace, name, owner } = this.#options
    const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }
    if (before === undefined) {
      const body = { ...kind, metadata: { name, namespace, ...ownedBy(owner) }, spec }
      return client.create<LeaseObject>(collection(namespace), body)
    }
    const { durationMs } = this.#options
    return client.replace<LeaseObject>(this.#path, { ...before, ...kind, spec }, durationMs / 3)
  }

  #spec(fields: LeaseSpec): LeaseSpec {
    const { identity, durationMs } = this.#options
    // The API has whole seconds.
    const leaseDurationSeconds = Math.max(1, Math.ceil(durationMs / 1_000))
    return { holderIdentity: identity, leaseDurationSeconds, ...fields }
  }

  #watchExpiry(): void {
    clearTimeout(this.#expiry)
    this.#expiry = setTimeout(() => {
      if (this.#term.granted === undefined) return
      if (this.#term.leftMs > 0) this.#watchExpiry()
      else this.#lose('it was not renewed in time')
    }, Math.max(0, this.#term.leftMs) + 1)
  }

  #lose(reason: string): void {
    clearTimeout(this.#expiry)
    this.#term.end()
    this.#options.onLost(reason)
  }

  /** Lets others have it at once; where that fails, they wait until it has run out. */
  async #release(): Promise<void> {
    try {
      const record = await this.#read()
      if (record?.spec?.holderIdentity !== this.#options.identity) return
      const { holderIdentity: _, ...spec } = record.spec
      this.#note(await this.#write(record, { ...spec, leaseDurationSeconds: 1 }))
    } catch {
      // As said.
    }
  }

  get #path(): string {
    const { namespace, name } = this.#options
    return `${collection(namespace)}/${name}`
  }

  /** An answer that comes after the term is of no use. */
  get #limit() {
    return { timeoutMs: this.#options.durationMs / 3 }
  }

  #wait(waitMs: number): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve()
      }
      const timer = setTimeout(done, waitMs)
      this.#wake = done
    })
  }
}

const collection = (namespace: string) =>
  `apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`

/** metav1.MicroTime. */
const microTime = () => new Date().toISOString().replace('Z', '000Z')
