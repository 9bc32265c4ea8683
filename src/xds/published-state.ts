/**
 * The published resources as streams send them: encoded once for each version, however many ask,
 * and known by the Gateways that need them.
 */
import type { ObjectName } from '../model/names.ts'
import type { DesiredDelta, ResourceKey, VersionedResource } from '../model/resources.ts'
import { type DiscoveryPiece, encodePiece } from '../wire/discovery.ts'
import { encodeBody } from '../wire/encode.ts'
import { type Edge, edgesOf, gatewayRoot, type Node } from './edges.ts'
import { type ScopeChange, Scopes } from './scopes.ts'

interface Entry {
  readonly versioned: VersionedResource
  readonly edges: readonly Edge[]
  /** Undefined until somebody asks, and where it cannot be encoded. */
  piece?: DiscoveryPiece
  isBroken: boolean
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

/** A resource that cannot be encoded: a bug, which must not keep the others from being served. */
export type OnUnencodable = (key: ResourceKey, sequence: number, error: unknown) => void

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
    for (const key of delta.removed) {
      removed.push(...(this.#entries.get(key)?.edges ?? []))
      this.#entries.delete(key)
    }
    for (const versioned of delta.upserted) {
      const { key } = versioned.resource
      const before = this.#entries.get(key)
      // The same again may be meant: what was refused for want of a secret is to be tried once more.
      const edges = edgesOf(versioned.resource)
      removed.push(...(before?.edges ?? []))
      added.push(...edges)
      const piece = before?.versioned.version === versioned.version ? before.piece : undefined
      this.#entries.set(key, { versioned, edges, isBroken: false, ...(piece && { piece }) })
    }
    return this.#touched(delta, this.#scopes.change(removed, added))
  }

  #touched(
    { upserted, removed }: DesiredDelta,
    changes: ReadonlyMap<Node, ScopeChange>,
  ): ReadonlyMap<Node, ReadonlySet<ResourceKey>> {
    const changed = [...upserted.map(({ resource }) => resource.key), ...removed]
    const touched = new Map<Node, Set<ResourceKey>>()
    for (const root of this.#scopes.roots()) {
      const members = this.#scopes.members(root)
      const { entered = none, left = none } = changes.get(root) ?? {}
      const keys = new Set([...changed.filter((key) => members.has(key)), ...entered, ...left])
      if (keys.size > 0) touched.set(root, keys)
    }
    return touched
  }

  /** What the proxies of a Gateway need, from now on; to be closed. */
  view(gateway: ObjectName): View {
    const root = gatewayRoot(gateway)
    const members = this.#scopes.open(root)
    const entryOf = (key: ResourceKey) => (members.has(key) ? this.#entries.get(key) : undefined)
    return {
      keys: () => members.values().filter((node) => this.#entries.has(node)),
      version: (key) => entryOf(key)?.versioned.version,
      piece: (key) => this.#pieceOf(entryOf(key)),
      close: () => this.#scopes.close(root),
    }
  }

  #pieceOf(entry: Entry | undefined): DiscoveryPiece | undefined {
    if (entry === undefined || entry.isBroken) return undefined
    const { resource, version } = entry.versioned
    try {
      entry.piece ??= encodePiece(resource.key, version, encodeBody(resource))
    } catch (error) {
      entry.isBroken = true
      this.#onUnencodable(resource.key, this.#sequence, error)
    }
    return entry.piece
  }
}
