/** Which objects of the cluster count: by namespace, and by whether anything refers to them. */
import { type LabelSelector, matchesSelector } from '../../base/label-selector.ts'
import type { Collection, Entry } from './collection.ts'
import { Interest, type Mentions } from './interest.ts'
import { PodInterest } from './pod-interest.ts'

export interface ScopeOptions {
  /** A namespace counts where any of them matches its labels; none: all namespaces count. */
  readonly namespaceSelectors: readonly LabelSelector[]
  /** Always read, or a selector could hide what the controller itself needs. */
  readonly ownNamespace: string
}

/** Kinds of which only those matter that something refers to. */
const narrowedKinds = ['Secret', 'ConfigMap', 'Service', 'EndpointSlice'] as const
const narrowed: ReadonlySet<string> = new Set(narrowedKinds)
const nameLabel = 'kubernetes.io/metadata.name'
const serviceLabel = 'kubernetes.io/service-name'
/** Marks what belongs to a Gateway; its Service tells the Gateway's addresses. */
const gatewayLabel = 'gateway.networking.k8s.io/gateway-name'

export class Scope {
  readonly #options: ScopeOptions
  readonly #collection: Collection
  readonly #interest = new Interest()
  readonly #pods = new PodInterest()
  /** Name that something may refer to -> keys of the narrowed objects behind it. */
  readonly #named = new Map<string, Set<string>>()
  /** Namespace -> does it count? As it was when last looked at. */
  readonly #selected = new Map<string, boolean>()
  /** `namespace/name` of the parameters that GatewayClasses name, by class. */
  readonly #parameters = new Map<string, string>()

  constructor(options: ScopeOptions, collection: Collection) {
    this.#options = options
    this.#collection = collection
  }

  /** Does an object count at present? */
  includes(entry: Entry): boolean {
    const { kind, namespace, name } = entry
    if (kind.namespaced && !this.#countsNamespace(namespace)) {
      const isOfClass =
        kind.kind === 'GatewayParameters' &&
        [...this.#parameters.values()].includes(`${namespace}/${name}`)
      if (!isOfClass) return false
    }
    if (kind.kind === 'Pod') return this.#pods.selects(namespace, entry.labels)
    return !narrowed.has(kind.kind) || this.#matters(entry)
  }

  /** Takes a change of an object; returns the keys of others for which the answer may differ now. */
  note(entry: Entry, isGone: boolean, mentions: Mentions | undefined): Iterable<string> {
    const touched = new Set<string>()
    const { kind, key } = entry
    if (kind.kind === 'Namespace') this.#noteNamespace(entry, isGone, touched)
    if (kind.kind === 'GatewayClass') this.#noteClass(entry, isGone, touched)
    if (kind.kind === 'InferencePool') this.#notePool(entry, isGone, touched)
    if (narrowed.has(kind.kind)) this.#noteNarrowed(entry, isGone, touched)
    const changed = this.#interest.set(key, isGone ? undefined : mentions)
    for (const name of changed.names) this.#touchNamed(name, touched)
    if (changed.isSelecting) this.#touchKinds(narrowedKinds, touched)
    return touched
  }

  #matters({ kind, name, namespace, labels }: Entry): boolean {
    if (kind.kind === 'EndpointSlice') {
      const service = labels[serviceLabel]
      if (service === undefined) return false
      const owner = this.#collection.get(`Service/${namespace}/${service}`)
      return owner === undefined ? this.#interest.isMentioned(service) : this.#matters(owner)
    }
    return (
      this.#interest.isMentioned(name) ||
      (kind.kind === 'Service' && labels[gatewayLabel] !== undefined) ||
      this.#interest.isSelected(labels)
    )
  }

  #countsNamespace(namespace: string): boolean {
    const known = this.#selected.get(namespace)
    if (known !== undefined) return known
    const labels = this.#collection.get(`Namespace//${namespace}`)?.labels ?? {}
    const counts = this.#selects(namespace, labels)
    this.#selected.set(namespace, counts)
    return counts
  }

  #selects(namespace: string, labels: Readonly<Record<string, string>>): boolean {
    const { namespaceSelectors, ownNamespace } = this.#options
    if (namespaceSelectors.length === 0 || namespace === ownNamespace) return true
    const named = { [nameLabel]: namespace, ...labels }
    return namespaceSelectors.some((selector) => matchesSelector(selector, named))
  }

  #noteNamespace({ name, labels }: Entry, isGone: boolean, touched: Set<string>): void {
    const before = this.#selected.get(name)
    const counts = this.#selects(name, isGone ? {} : labels)
    this.#selected.set(name, counts)
    if (before === undefined || before === counts) return
    for (const entry of this.#collection.entries()) {
      if (entry.kind.namespaced && entry.namespace === name) touched.add(entry.key)
    }
  }

  #noteClass({ name, claim }: Entry, isGone: boolean, touched: Set<string>): void {
    const object = claim?.content.state === 'valid' ? claim.content.object : undefined
    const spec = object?.spec as
      | { parametersRef?: { namespace?: string; name: string } }
      | undefined
    const named = spec?.parametersRef
    const fresh = named && !isGone ? `${named.namespace}/${named.name}` : undefined
    const before = this.#parameters.get(name)
    if (fresh === undefined) this.#parameters.delete(name)
    else this.#parameters.set(name, fresh)
    for (const one of [before, fresh]) {
      if (one !== undefined) touched.add(`GatewayParameters/${one}`)
    }
  }

  #notePool({ key, namespace, claim }: Entry, isGone: boolean, touched: Set<string>): void {
    // A version that is refused changes nothing: the one before it stays in force.
    if (!isGone && claim?.content.state !== 'valid') return
    const object = claim?.content.state === 'valid' ? claim.content.object : undefined
    const spec = object?.spec as { readonly selector?: LabelSelector } | undefined
    if (!this.#pods.set(key, namespace, isGone ? undefined : spec?.selector)) return
    for (const pod of this.#collection.keysOf('Pod')) {
      if (pod.startsWith(`Pod/${namespace}/`)) touched.add(pod)
    }
  }

  #noteNarrowed(entry: Entry, isGone: boolean, touched: Set<string>): void {
    const { kind, key, namespace, name, labels } = entry
    const isSlice = kind.kind === 'EndpointSlice'
    const target = isSlice ? labels[serviceLabel] : name
    if (target === undefined) return
    const keys = this.#named.get(target) ?? new Set()
    if (isGone) keys.delete(key)
    else keys.add(key)
    if (keys.size === 0) this.#named.delete(target)
    else this.#named.set(target, keys)
    // Its labels may decide about the slices of a Service.
    if (kind.kind !== 'Service') return
    for (const other of keys) {
      if (other.startsWith(`EndpointSlice/${namespace}/`)) touched.add(other)
    }
  }

  #touchNamed(name: string, touched: Set<string>): void {
    for (const key of this.#named.get(name) ?? []) touched.add(key)
  }

  #touchKinds(kinds: readonly string[], touched: Set<string>): void {
    for (const kind of kinds) {
      for (const key of this.#collection.keysOf(kind)) touched.add(key)
    }
  }
}
