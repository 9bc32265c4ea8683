/** Which objects of the cluster are relevant, by namespace and by references to them. */

import { SetMap } from '../../../ground/base/set-map.ts'
import { type LabelSelector, matchesSelector } from '../../../ground/model/label-selector.ts'
import type { Collection, CollectionEntry } from './collection.ts'
import { Interest, type MentionedNames } from './interest.ts'

export interface ScopeOptions {
  /** A namespace is relevant if any of these selectors matches its labels. If empty, every namespace is. */
  readonly namespaceSelectors: readonly LabelSelector[]
  /** The controller's own namespace, which is always relevant. */
  readonly ownNamespace: string
}

/** The parts of an object that decide whether it is read. */
export type ScopedObject = Pick<CollectionEntry, 'kind' | 'namespace' | 'name' | 'labels'>

/** Kinds whose objects are relevant only if something refers to them. */
const narrowedKinds = ['Secret', 'ConfigMap', 'Service', 'EndpointSlice'] as const
const narrowed: ReadonlySet<string> = new Set(narrowedKinds)
const nameLabel = 'kubernetes.io/metadata.name'
const serviceLabel = 'kubernetes.io/service-name'
/** Label of the Service of a Gateway, whose status has the Gateway's addresses. */
const gatewayLabel = 'gateway.networking.k8s.io/gateway-name'

export class WatchScope {
  readonly #options: ScopeOptions
  readonly #collection: Collection
  readonly #interest = new Interest()
  readonly #pods = new PodInterest()
  /** Name -> keys of the narrowed objects that a reference to this name may mean. */
  readonly #named = new SetMap<string, string>()
  /** Namespace -> whether it is relevant, as last computed. */
  readonly #selected = new Map<string, boolean>()
  /** Class -> `namespace/name` of its parameters. */
  readonly #parameters = new Map<string, string>()

  constructor(options: ScopeOptions, collection: Collection) {
    this.#options = options
    this.#collection = collection
  }

  /** Whether an object is relevant now. */
  includes(entry: ScopedObject): boolean {
    const { kind, namespace, name } = entry
    if (kind.namespaced && !this.#includesNamespace(namespace)) {
      const isOfClass =
        kind.kind === 'GatewayParameters' &&
        [...this.#parameters.values()].includes(`${namespace}/${name}`)
      if (!isOfClass) return false
    }
    if (kind.kind === 'Pod') return this.#pods.selects(namespace, entry.labels)
    return !narrowed.has(kind.kind) || this.#isReferenced(entry)
  }

  /** Records a change of an object. Returns the keys of objects whose relevance may have changed. */
  note(
    entry: CollectionEntry,
    isGone: boolean,
    mentions: MentionedNames | undefined,
  ): Iterable<string> {
    const touched = new Set<string>()
    const { kind, key } = entry
    if (kind.kind === 'Namespace') this.#noteNamespace(entry, isGone, touched)
    if (kind.kind === 'GatewayClass') this.#noteClass(entry, isGone, touched)
    if (kind.kind === 'InferencePool') this.#notePool(entry, isGone, touched)
    if (narrowed.has(kind.kind)) this.#noteNarrowed(entry, isGone, touched)
    const changed = this.#interest.set(key, isGone ? undefined : mentions)
    for (const name of changed.names) this.#touchNamed(name, touched)
    if (changed.selectorsChanged) this.#touchKinds(narrowedKinds, touched)
    return touched
  }

  #isReferenced({ kind, name, namespace, labels }: ScopedObject): boolean {
    if (kind.kind === 'EndpointSlice') {
      const service = labels[serviceLabel]
      if (service === undefined) return false
      const owner = this.#collection.get(`Service/${namespace}/${service}`)
      return owner === undefined ? this.#interest.isMentioned(service) : this.#isReferenced(owner)
    }
    return (
      this.#interest.isMentioned(name) ||
      (kind.kind === 'Service' && labels[gatewayLabel] !== undefined) ||
      this.#interest.isSelected(labels)
    )
  }

  #includesNamespace(namespace: string): boolean {
    const known = this.#selected.get(namespace)
    if (known !== undefined) return known
    const labels = this.#collection.get(`Namespace//${namespace}`)?.labels ?? {}
    const isSelected = this.#selects(namespace, labels)
    this.#selected.set(namespace, isSelected)
    return isSelected
  }

  #selects(namespace: string, labels: Readonly<Record<string, string>>): boolean {
    const { namespaceSelectors, ownNamespace } = this.#options
    if (namespaceSelectors.length === 0 || namespace === ownNamespace) return true
    const named = { [nameLabel]: namespace, ...labels }
    return namespaceSelectors.some((selector) => matchesSelector(selector, named))
  }

  #noteNamespace({ name, labels }: CollectionEntry, isGone: boolean, touched: Set<string>): void {
    const before = this.#selected.get(name)
    const isSelected = this.#selects(name, isGone ? {} : labels)
    this.#selected.set(name, isSelected)
    if (before === undefined || before === isSelected) return
    for (const entry of this.#collection.entries()) {
      if (entry.kind.namespaced && entry.namespace === name) touched.add(entry.key)
    }
  }

  #noteClass({ name, claim }: CollectionEntry, isGone: boolean, touched: Set<string>): void {
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

  #notePool(
    { key, namespace, claim }: CollectionEntry,
    isGone: boolean,
    touched: Set<string>,
  ): void {
    // A refused version changes nothing: the one before it stays in force.
    if (!isGone && claim?.content.state !== 'valid') return
    const object = claim?.content.state === 'valid' ? claim.content.object : undefined
    const spec = object?.spec as { readonly selector?: LabelSelector } | undefined
    if (!this.#pods.set(key, namespace, isGone ? undefined : spec?.selector)) return
    for (const pod of this.#collection.keysOf('Pod')) {
      if (pod.startsWith(`Pod/${namespace}/`)) touched.add(pod)
    }
  }

  #noteNarrowed(entry: CollectionEntry, isGone: boolean, touched: Set<string>): void {
    const { kind, key, namespace, name, labels } = entry
    const isSlice = kind.kind === 'EndpointSlice'
    const target = isSlice ? labels[serviceLabel] : name
    if (target === undefined) return
    if (isGone) this.#named.delete(target, key)
    else this.#named.add(target, key)
    // EndpointSlices are relevant if their Service is, which may depend on its labels.
    if (kind.kind !== 'Service') return
    for (const other of this.#named.get(target)) {
      if (other.startsWith(`EndpointSlice/${namespace}/`)) touched.add(other)
    }
  }

  #touchNamed(name: string, touched: Set<string>): void {
    for (const key of this.#named.get(name)) touched.add(key)
  }

  #touchKinds(kinds: readonly string[], touched: Set<string>): void {
    for (const kind of kinds) {
      for (const key of this.#collection.keysOf(kind)) touched.add(key)
    }
  }
}

interface PoolSelection {
  readonly namespace: string
  readonly selector: LabelSelector
  readonly text: string
}

/** Decides which Pods are relevant: those that an InferencePool of their namespace selects. */
class PodInterest {
  readonly #byPool = new Map<string, PoolSelection>()

  /** Sets the selector of a pool, or removes it if it is undefined. Returns whether it changed. */
  set(key: string, namespace: string, selector: LabelSelector | undefined): boolean {
    const before = this.#byPool.get(key)
    const text = selector === undefined ? undefined : JSON.stringify(selector)
    if (before?.text === text) return false
    if (selector === undefined || text === undefined) this.#byPool.delete(key)
    else this.#byPool.set(key, { namespace, selector, text })
    return true
  }

  selects(namespace: string, labels: Readonly<Record<string, string>>): boolean {
    for (const pool of this.#byPool.values()) {
      if (pool.namespace === namespace && matchesSelector(pool.selector, labels)) return true
    }
    return false
  }
}
