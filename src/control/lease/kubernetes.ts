/**
 * Stores the lease of the controller's replicas in a Lease object (coordination.k8s.io/v1). The epoch
 * is its `leaseTransitions`.
 */
import { type KubeClient, KubeError, type OwnerReference, ownedBy } from '../kube/index.ts'
import type { LeaseRecord, LeaseStore } from './lease.ts'

interface LeaseObjectOptions {
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
  readonly metadata: {
    readonly name: string
    readonly resourceVersion?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: LeaseSpec
}

/** Annotation that names the candidate that asks for the lease. */
const wantedAnnotation = 'sluice.dev/wanted-by'

export class LeaseObjectStore implements LeaseStore {
  readonly #options: LeaseObjectOptions
  /** The object as last read or written. A write keeps the fields that are not ours. */
  #object: LeaseObject | undefined

  constructor(options: LeaseObjectOptions) {
    this.#options = options
  }

  async read(timeoutMs: number): Promise<LeaseRecord | undefined> {
    try {
      this.#object = await this.#options.client.get<LeaseObject>(this.#path, { timeoutMs })
      return recordOf(this.#object)
    } catch (error) {
      if (!(error instanceof KubeError) || !error.isNotFound) throw error
      this.#object = undefined
      return undefined
    }
  }

  async write(
    before: LeaseRecord | undefined,
    { holder, durationMs, epoch, wantedBy }: Omit<LeaseRecord, 'version'>,
    timeoutMs: number,
  ): Promise<LeaseRecord | undefined> {
    const time = microTime()
    const known = before === undefined ? undefined : this.#object?.spec
    const isRenewal = known?.holderIdentity === holder && known?.leaseTransitions === epoch
    const acquireTime = isRenewal || holder === undefined ? known?.acquireTime : time
    const annotations = { ...this.#object?.metadata.annotations }
    delete annotations[wantedAnnotation]
    if (wantedBy !== undefined) annotations[wantedAnnotation] = wantedBy
    const spec: LeaseSpec = {
      ...(holder !== undefined && { holderIdentity: holder }),
      // The API counts whole seconds.
      leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1_000)),
      ...(acquireTime !== undefined && { acquireTime }),
      renewTime: time,
      leaseTransitions: epoch,
    }
    try {
      this.#object = await this.#put(before, { spec, annotations }, timeoutMs)
      return recordOf(this.#object)
    } catch (error) {
      if (error instanceof KubeError && error.isConflict) return undefined
      throw error
    }
  }

  #put(
    before: LeaseRecord | undefined,
    { spec, annotations }: { spec: LeaseSpec; annotations: Readonly<Record<string, string>> },
    timeoutMs: number,
  ): Promise<LeaseObject> {
    const { client, namespace, name, owner } = this.#options
    const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }
    if (before === undefined) {
      const body = { ...kind, metadata: { name, namespace, ...ownedBy(owner) }, spec }
      return client.create<LeaseObject>(this.#collection, body, timeoutMs)
    }
    const { version: resourceVersion } = before
    const metadata = { ...this.#object?.metadata, annotations, name, resourceVersion }
    const body = { ...this.#object, ...kind, metadata, spec }
    return client.replace<LeaseObject>(this.#path, body, timeoutMs)
  }

  get #collection(): string {
    return `apis/coordination.k8s.io/v1/namespaces/${this.#options.namespace}/leases`
  }

  get #path(): string {
    return `${this.#collection}/${this.#options.name}`
  }
}

function recordOf({ metadata, spec = {} }: LeaseObject): LeaseRecord {
  const wantedBy = metadata.annotations?.[wantedAnnotation]
  const { holderIdentity, leaseDurationSeconds = 15, leaseTransitions = 0 } = spec
  return {
    version: metadata.resourceVersion ?? '',
    // Other clients give a lease up by setting an empty name.
    ...(holderIdentity !== undefined && holderIdentity !== '' && { holder: holderIdentity }),
    durationMs: leaseDurationSeconds * 1_000,
    epoch: leaseTransitions,
    ...(wantedBy !== undefined && { wantedBy }),
  }
}

/** The current time in the format of metav1.MicroTime. */
const microTime = () => new Date().toISOString().replace('Z', '000Z')
