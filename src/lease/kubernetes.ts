/**
 * A Lease object (coordination.k8s.io/v1) as the lease of the controller's replicas.
 * `leaseTransitions` is the epoch.
 */
import { type KubeClient, KubeError, type OwnerReference, ownedBy } from '../kube/index.ts'
import type { LeaseOptions } from './lease.ts'
import { type LeaseRecord, type LeaseStore, RecordLease } from './record-lease.ts'

interface KubernetesLeaseOptions extends LeaseOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly name: string
  readonly owner?: OwnerReference | undefined
}

export class KubernetesLease extends RecordLease {
  constructor({ client, namespace, name, owner, ...options }: KubernetesLeaseOptions) {
    super({ ...options, store: new LeaseObjects(client, { namespace, name, owner }) })
  }
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

/** Names the candidate that asks for the lease. */
const wantedAnnotation = 'sluice.dev/wanted-by'

class LeaseObjects implements LeaseStore {
  readonly #client: KubeClient
  readonly #namespace: string
  readonly #name: string
  readonly #owner: OwnerReference | undefined
  /** As it was read or written last: what is not ours in it stays. */
  #object: LeaseObject | undefined

  constructor(
    client: KubeClient,
    { namespace, name, owner }: Pick<KubernetesLeaseOptions, 'namespace' | 'name' | 'owner'>,
  ) {
    this.#client = client
    this.#namespace = namespace
    this.#name = name
    this.#owner = owner
  }

  async read(timeoutMs: number): Promise<LeaseRecord | undefined> {
    try {
      this.#object = await this.#client.get<LeaseObject>(this.#path, { timeoutMs })
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
      // The API has whole seconds.
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
    const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }
    const { name, resourceVersion: _, ...metadata } = this.#object?.metadata ?? { name: this.#name }
    if (before === undefined) {
      const body = {
        ...kind,
        metadata: { name, namespace: this.#namespace, ...ownedBy(this.#owner) },
        spec,
      }
      return this.#client.create<LeaseObject>(this.#collection, body)
    }
    const versioned = { ...metadata, annotations, name, resourceVersion: before.version }
    const body = { ...this.#object, ...kind, metadata: versioned, spec }
    return this.#client.replace<LeaseObject>(this.#path, body, timeoutMs)
  }

  get #collection(): string {
    return `apis/coordination.k8s.io/v1/namespaces/${this.#namespace}/leases`
  }

  get #path(): string {
    return `${this.#collection}/${this.#name}`
  }
}

function recordOf({ metadata, spec = {} }: LeaseObject): LeaseRecord {
  const wantedBy = metadata.annotations?.[wantedAnnotation]
  const { holderIdentity, leaseDurationSeconds = 15, leaseTransitions = 0 } = spec
  return {
    version: metadata.resourceVersion ?? '',
    // Others than we give a lease up with an empty name.
    ...(holderIdentity !== undefined && holderIdentity !== '' && { holder: holderIdentity }),
    durationMs: leaseDurationSeconds * 1_000,
    epoch: leaseTransitions,
    ...(wantedBy !== undefined && { wantedBy }),
  }
}

/** metav1.MicroTime. */
const microTime = () => new Date().toISOString().replace('Z', '000Z')
