/**
 * The published resources as streams send them. Each version is encoded once, however many proxies get it,
 * and each Gateway gets only the resources that it needs.
 */

import type { ObjectName } from '../../ground/model/names.ts'
import type {
  DesiredDelta,
  Resource,
  ResourceKey,
  VersionedResource,
} from '../../ground/model/resources.ts'
import { contentVersion } from '../wire/content-version.ts'
import { type DiscoveryPiece, encodePiece } from '../wire/discovery.ts'
import { encodeBody } from '../wire/encode.ts'
import { type Edge, type EdgeNode, edgesOf, gatewayRoot } from './edges.ts'
import { type ScopeChange, Scopes } from './scopes.ts'

/** A resource in the form that some Gateways get. Most resources have one form, which all Gateways get. */
interface Form {
  readonly versioned: VersionedResource
  /** The encoded resource. Not set until it is needed, or if the resource cannot be encoded. */
  piece?: DiscoveryPiece
  isBroken: boolean
}

interface Entry {
  readonly whole: Form
  readonly edges: readonly Edge[]
  /** Forms with fewer attachments, by the root of the Gateway that gets them. */
  readonly parts: Map<EdgeNode, Form>
}

/** The part of the published state that the proxies of one Gateway get. */
export interface GatewayState {
  /** Keys of the published resources that the Gateway needs, in no particular order. */
  keys(): Iterable<ResourceKey>
  /** Version of a resource; undefined if it is not published or not needed. */
  version(key: ResourceKey): string | undefined
  /** A resource; undefined if it is not published or not needed. */
  resource(key: ResourceKey): Resource | undefined
  /** Bytes of a resource; undefined if it is not published, not needed or cannot be encoded. */
  piece(key: ResourceKey): DiscoveryPiece | undefined
  close(): void
}

const none: ReadonlySet<EdgeNode> = new Set()

/** Called for a resource that cannot be encoded, a bug that must not prevent the others from being served. */
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

  /** Applies a change set. Returns the keys to check again, by the root of each open Gateway. */
  publish(delta: DesiredDelta): ReadonlyMap<EdgeNode, ReadonlySet<ResourceKey>> {
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
      // An unchanged resource is sent again on purpose: a proxy that lacked its secret retries.
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
    changes: ReadonlyMap<EdgeNode, ScopeChange>,
  ): ReadonlyMap<EdgeNode, ReadonlySet<ResourceKey>> {
    const changed = [...upserted.map(({ resource }) => resource.key), ...removed]
    const touched = new Map<EdgeNode, Set<ResourceKey>>()
    for (const root of this.#scopes.roots()) {
      const members = this.#scopes.members(root)
      const { entered = none, left = none } = changes.get(root) ?? {}
      const own = changed.filter((key) => members.has(key) && !this.#looksSame(key, before, root))
      const keys = new Set([
        ...own,
        ...entered,
        ...left,
        ...this.#withOtherListeners(root, entered, left),
      ])
      if (keys.size > 0) touched.set(root, keys)
    }
    return touched
  }

  /** Whether a resource changed only in parts that the Gateway does not get. */
  #looksSame(key: ResourceKey, before: ReadonlyMap<ResourceKey, Entry>, root: EdgeNode): boolean {
    const entry = this.#entries.get(key)
    const old = before.get(key)
    if (entry === undefined || old === undefined) return false
    // With an unchanged version, the resource is sent again on purpose.
    if (old.whole.versioned.version === entry.whole.versioned.version) return false
    const seen = old.parts.get(root) ?? old.whole
    return seen.versioned.version === this.#formFor(entry, root).versioned.version
  }

  /** Returns resources whose form for a Gateway changes because one of their listeners entered or left it. */
  #withOtherListeners(
    root: EdgeNode,
    entered: ReadonlySet<EdgeNode>,
    left: ReadonlySet<EdgeNode>,
  ): ResourceKey[] {
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

  /** Returns a resource in the form that the proxies of a Gateway get. */
  #formFor(entry: Entry, root: EdgeNode): Form {
    const known = entry.parts.get(root)
    if (known !== undefined) return known
    const versioned = scopedTo(entry.whole.versioned, this.#scopes.members(root))
    if (versioned === entry.whole.versioned) return entry.whole
    const form = { versioned, isBroken: false }
    entry.parts.set(root, form)
    return form
  }

  /** Tracks what the proxies of a Gateway need, until the returned state is closed. */
  openGateway(gateway: ObjectName): GatewayState {
    const root = gatewayRoot(gateway)
    const members = this.#scopes.open(root)
    const form = (key: ResourceKey) => {
      const entry = members.has(key) ? this.#entries.get(key) : undefined
      return entry && this.#formFor(entry, root)
    }
    return {
      keys: () => members.values().filter((node) => this.#entries.has(node)),
      version: (key) => form(key)?.versioned.version,
      resource: (key) => form(key)?.versioned.resource,
      piece: (key) => this.#pieceOf(form(key)),
      close: () => this.#close(root),
    }
  }

  #close(root: EdgeNode): void {
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

/**
 * Returns a resource as the proxies of one Gateway may see it; `members` is the scope of that Gateway. A
 * route can be attached to listeners of several Gateways. Each Gateway gets its own listeners only, since
 * names and hostnames of the others are private to their owners.
 */
function scopedTo(versioned: VersionedResource, members: ReadonlySet<EdgeNode>): VersionedResource {
  const { resource } = versioned
  if (resource.type !== 'route' && resource.type !== 'stream') return versioned
  const attachments = resource.attachments.filter(({ listener }) => members.has(listener))
  if (attachments.length === resource.attachments.length) return versioned
  const own = { ...resource, attachments }
  return { version: contentVersion(own), resource: own }
}
