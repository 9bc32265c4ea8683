/**
 * The published resources as streams send them: encoded once for each version, however many ask,
 * and known by the Gateways that need them.
 */
import type { ObjectName } from '../model/names.ts'
import type { DesiredDelta, ResourceKey, VersionedResource } from '../model/resources.ts'
import { type DiscoveryPiece, encodePiece } from '../wire/discovery.ts'
import { encodeBody } from '../wire/encode.ts'
import { type Edge, edgesOf, gatewayRoot, type Node } from './edges.ts'
import { within } from './scoped-resource.ts'
import { type ScopeChange, Scopes } from './scopes.ts'

/** A resource in one of its forms; most have one, which is for everybody. */
interface Form {
  readonly versioned: VersionedResource
  /** Undefined until somebody asks, and where it cannot be encoded. */
  piece?: DiscoveryPiece
  isBroken: boolean
}

interface Entry {
  readonly whole: Form
  readonly edges: readonly Edge[]
  /** What single Gateways get instead, by root: parts of it are none of their business. */
  readonly parts: Map<Node, Form>
}

/** What a stream may send of one Gateway. */
export interface View {
  /** Keys that are there and needed, in no particular order. */
  keys(): Iterable<ResourceKey>
  /** Version of a resource that is there and needed. */
  version(key: ResourceKey): string | undefined
  /** The bytes of a resource that is there and needed. */
  piece(key: ResourceKey): DiscoveryPiece | undefined
  close(): void
}

const none: ReadonlySet<Node> = new Set()

const formOf = (versioned: VersionedResource): Form => ({ versioned, isBroken: false })

/** A resource that cannot be encoded: a bug, which must not keep the others from being served. */
type OnUnencodable = (key: ResourceKey, sequence: number, error: unknown) => void

export class PublishedState {
  readonly #entries = new Map<ResourceKey, Entry>()
  readonly #scopes = new Scopes()
  readonly #onUnencodable: OnUnencodable
  #sequence = -1

  constructor(onUnencodable: OnUnencodable) {
    this.#onUnencodable = onUnencodable
  }

  /** Position of the last change set; -1 before the first. */
  get sequence(): number {
    return this.#sequence
  }

  /** Number of resources that are published. */
  get size(): number {
    return this.#entries.size
  }

  /** Takes a change set in; gives the nodes to look at again, by Gateway root (of open views). */
  publish(delta: DesiredDelta): ReadonlyMap<Node, ReadonlySet<ResourceKey>> {
    this.#sequence = delta.sequence
    const removed: Edge[] = []
    const added: Edge[] = []
    const before = new Map<ResourceKey, Entry>()
    for (const key of delta.removed) {
      removed.push(...(this.#entries.get(key)?.edges ?? []))
      this.#entries.delete(key)
    }
    for (const versioned of delta.upserted) {
      const { key } = versioned.resource
      const old = this.#entries.get(key)
      if (old !== undefined) before.set(key, old)
      // The same again may be meant: what was refused for want of a secret is to be tried once more.
      const edges = edgesOf(versioned.resource)
      removed.push(...(old?.edges ?? []))
      added.push(...edges)
      const isSame = old?.whole.versioned.version === versioned.version
      const { piece } = (isSame && old?.whole) || {}
      const whole = { versioned, isBroken: false, ...(piece && { piece }) }
      this.#entries.set(key, { whole, edges, parts: new Map(isSame ? old?.parts : []) })
    }
    return this.#touched(delta, before, this.#scopes.change(removed, added))
  }

  #touched(
    { upserted, removed }: DesiredDelta,
    before: ReadonlyMap<ResourceKey, Entry>,
    changes: ReadonlyMap<Node, ScopeChange>,
  ): ReadonlyMap<Node, ReadonlySet<ResourceKey>> {
    const changed = [...upserted.map(({ resource }) => resource.key), ...removed]
    const touched = new Map<Node, Set<ResourceKey>>()
    for (const root of this.#scopes.roots()) {
      const members = this.#scopes.members(root)
      const { entered = none, left = none } = changes.get(root) ?? {}
      const own = changed.filter((key) => members.has(key) && !this.#looksSame(key, before, root))
      const keys = new Set([...own, ...entered, ...left, ...this.#beside(root, entered, left)])
      if (keys.size > 0) touched.set(root, keys)
    }
    return touched
  }

  /** Has a resource changed in a part only that a Gateway does not see? */
  #looksSame(key: ResourceKey, before: ReadonlyMap<ResourceKey, Entry>, root: Node): boolean {
    const entry = this.#entries.get(key)
    const old = before.get(key)
    if (entry === undefined || old === undefined) return false
    // Of equal versions of the whole one is meant again.
    if (old.whole.versioned.version === entry.whole.versioned.version) return false
    const seen = old.parts.get(root) ?? old.whole
    return seen.versioned.version === this.#formFor(entry, root).versioned.version
  }

  /** What looks different to a Gateway because a listener that it names has come or gone. */
  #beside(root: Node, entered: ReadonlySet<Node>, left: ReadonlySet<Node>): ResourceKey[] {
    const members = this.#scopes.members(root)
    const listeners = [...entered, ...left].filter((node) => node.startsWith('listener/'))
    return listeners
      .flatMap((listener) => [...this.#scopes.below(listener)])
      .filter((key) => {
        const entry = this.#entries.get(key)
        if (entry === undefined) return false
        const seen = (entry.parts.get(root) ?? entry.whole).versioned.version
        entry.parts.delete(root)
        return members.has(key) && this.#formFor(entry, root).versioned.version !== seen
      })
  }

  /** A resource as the proxies of a Gateway get it. */
  #formFor(entry: Entry, root: Node): Form {
    const known = entry.parts.get(root)
    if (known !== undefined) return known
    const versioned = within(entry.whole.versioned, this.#scopes.members(root))
    if (versioned === entry.whole.versioned) return entry.whole
    const form = formOf(versioned)
    entry.parts.set(root, form)
    return form
  }

  /** What the proxies of a Gateway need, from now on; to be closed. */
  view(gateway: ObjectName): View {
    const root = gatewayRoot(gateway)
    const members = this.#scopes.open(root)
    const form = (key: ResourceKey) => {
      const entry = members.has(key) ? this.#entries.get(key) : undefined
      return entry && this.#formFor(entry, root)
    }
    return {
      keys: () => members.values().filter((node) => this.#entries.has(node)),
      version: (key) => form(key)?.versioned.version,
      piece: (key) => this.#pieceOf(form(key)),
      close: () => this.#close(root),
    }
  }

  #close(root: Node): void {
    this.#scopes.close(root)
    if ([...this.#scopes.roots()].includes(root)) return
    for (const { parts } of this.#entries.values()) parts.delete(root)
  }

  #pieceOf(form: Form | undefined): DiscoveryPiece | undefined {
    if (form === undefined || form.isBroken) return undefined
    const { resource, version } = form.versioned
    try {
      form.piece ??= encodePiece(resource.key, version, encodeBody(resource))
    } catch (error) {
      form.isBroken = true
      this.#onUnencodable(resource.key, this.#sequence, error)
    }
    return form.piece
  }
}
