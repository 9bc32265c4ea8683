/**
 * The incremental join of all observed objects into desired state and conditions.
 *
 * A *stage* derives one node for each object of its kinds. While a node is derived, everything it
 * reads is recorded; when one of those things changes, just the nodes that read it are derived
 * again, in the order of the stages. So a change costs what it touches, and `explain` can answer
 * why a node has the value that it has.
 *
 * ```
 *   objects ──► index sets ──► stage 1 ──► stage 2 ──► … ──► resources, statuses
 *                                 └─ values, relations ─┘
 * ```
 *
 * A stage may read objects, indexes and facts, and the values and relations of earlier stages only,
 * so there are no cycles. Everything is pure: no clock, no randomness, sorted iteration.
 */
import { hasSameContent } from '../base/same-content.ts'
import type { KeySetRequest } from '../model/key-sets.ts'
import type { ObjectKey, ObjectRef } from '../model/names.ts'
import { objectKey } from '../model/names.ts'
import type { Resource, ResourceKey } from '../model/resources.ts'
import type { Deployment } from './deployment/index.ts'
import { KeySetRequests } from './key-set-requests.ts'
import { type ObjectState, refusalAfter } from './object-state.ts'
import { OutputStore } from './output-store.ts'

/** A name under which something can be read; the unit of dependency. */
type ReadKey = string

export interface Reader {
  /** The object's state, also where its only versions were refused; undefined where unknown. */
  object(kind: string, namespace: string, name: string): ObjectState | undefined
  /** Objects that an index function put under a key, by kind, namespace and name. */
  index(name: string, key: string): readonly ObjectState[]
  /** What an earlier stage derived for an object. */
  value<Value>(stage: string, ref: ObjectRef): Value | undefined
  /** Members that earlier stages contributed under a key, sorted. */
  members(relation: string, key: string): readonly string[]
  /** How many contributions there are under a key. */
  count(relation: string, key: string): number
  /** A fact that is not an object, such as what a proxy has acknowledged. */
  fact<Value>(name: string): Value | undefined
  /** Asks for a key set to be fetched, for as long as derivations ask; it comes as a fact. */
  requestKeySet(request: KeySetRequest): void
}

export type Contribution = readonly [relation: string, key: string, member: string]

/** What a stage derives for one object; everything optional. */
export interface Derived {
  readonly resources?: readonly Resource[]
  /** The status subresource as it should be, without transition times. */
  readonly status?: Readonly<Record<string, unknown>>
  /** Read by later stages. Compared by content: an equal value wakes nobody. */
  readonly value?: unknown
  readonly contributions?: readonly Contribution[]
  /** What is to be deployed for the object; absent where that is nobody's concern. */
  readonly deployment?: Deployment
}

export interface Stage {
  readonly name: string
  readonly kinds: readonly string[]
  derive(self: ObjectState, read: Reader): Derived
}

/**
 * An object on which a stage fails is derived as one that is refused: its status says so, a policy
 * closes its targets, and the other objects go on.
 */
function deriveSafely(stage: Stage, state: ObjectState, read: Reader): Derived {
  try {
    return stage.derive(state, read)
  } catch (error) {
    const refused = refusalAfter(error, state)
    return refused === undefined ? {} : stage.derive({ ...state, object: undefined, refused }, read)
  }
}

/** Puts an object under keys, from the object alone. */
export interface IndexDefinition {
  readonly name: string
  readonly kinds: readonly string[]
  keys(state: ObjectState): readonly string[]
}

/** What one stage did for one object. */
interface DerivationTrace {
  readonly stage: string
  readonly reads: readonly ReadKey[]
  readonly resources: readonly ResourceKey[]
  /** As decided, with what a written status leaves out. */
  readonly status: Derived['status']
}

interface Node {
  readonly stage: number
  readonly key: ObjectKey
  reads: Set<ReadKey>
  derived: Derived
  /** Canonical text of `derived.value`, for the comparison. */
  valueText: string
}

export class Graph {
  readonly outputs = new OutputStore()
  readonly keySets = new KeySetRequests()
  readonly #stages: readonly Stage[]
  readonly #indexes: readonly IndexDefinition[]
  readonly #stageByName: ReadonlyMap<string, number>
  readonly #objects = new Map<ObjectKey, ObjectState>()
  readonly #facts = new Map<string, unknown>()
  /** `index name \0 key` -> object keys. */
  readonly #indexed = new Map<string, Set<ObjectKey>>()
  /** Per stage: object key -> node. */
  readonly #nodes: readonly Map<ObjectKey, Node>[]
  readonly #readers = new Map<ReadKey, Set<Node>>()
  /** Relation -> last stage that contributes to it, first stage that reads it. */
  readonly #relationStages = new Map<string, { last: number; first: number }>()
  /** `relation \0 key` -> member -> how many nodes contributed it. */
  readonly #relations = new Map<string, Map<string, number>>()
  /** Per stage: nodes that must be derived again. */
  readonly #dirty: readonly Set<ObjectKey>[]
  /** Per stage: what it reads through; one derivation at a time. */
  readonly #views: readonly Reader[]
  /** Of the derivation that is under way. */
  #reads = new Set<ReadKey>()
  #asked: KeySetRequest[] = []

  constructor(stages: readonly Stage[], indexes: readonly IndexDefinition[]) {
    this.#stages = stages
    this.#indexes = indexes
    this.#stageByName = new Map(stages.map((stage, position) => [stage.name, position]))
    this.#nodes = stages.map(() => new Map())
    this.#dirty = stages.map(() => new Set())
    this.#views = stages.map((_, position) => this.#reader(position))
  }

  object(key: ObjectKey): ObjectState | undefined {
    return this.#objects.get(key)
  }

  /** Every object that is known, in no particular order. */
  objects(): IterableIterator<ObjectState> {
    return this.#objects.values()
  }

  /** What a stage derived for an object, for those who show it. */
  valueOf<Value>(stage: string, ref: ObjectRef): Value | undefined {
    const position = this.#stageByName.get(stage)
    if (position === undefined) return undefined
    return this.#nodes[position]?.get(objectKey(ref))?.derived.value as Value | undefined
  }

  /** What was read when a stage last derived an object: the answer to "why". */
  readsOf(stage: string, ref: ObjectRef): readonly ReadKey[] {
    const position = this.#stageByName.get(stage)
    const node = position === undefined ? undefined : this.#nodes[position]?.get(objectKey(ref))
    return node === undefined ? [] : [...node.reads].sort()
  }

  /** Every derivation of an object, in the order of the stages: what it read, what it gave. */
  derivationsOf(ref: ObjectRef): readonly DerivationTrace[] {
    const key = objectKey(ref)
    return this.#stages.flatMap(({ name }, position) => {
      const node = this.#nodes[position]?.get(key)
      if (node === undefined) return []
      const { resources = [], status } = node.derived
      const keys = resources.map((resource) => resource.key)
      return [{ stage: name, reads: [...node.reads].sort(), resources: keys, status }]
    })
  }

  setObject(state: ObjectState): void {
    const key = objectKey(state.ref)
    const before = this.#objects.get(key)
    this.#objects.set(key, state)
    this.#reindex(key, before, state)
    this.#wake(`object:${key}`)
    this.#forEachStageOf(state.ref.kind, (stage) => this.#dirty[stage]?.add(key))
  }

  removeObject(ref: ObjectRef): void {
    const key = objectKey(ref)
    const before = this.#objects.get(key)
    if (before === undefined) return
    this.#objects.delete(key)
    this.#reindex(key, before, undefined)
    this.#wake(`object:${key}`)
    this.#forEachStageOf(ref.kind, (stage) => this.#dirty[stage]?.add(key))
  }

  /** Facts are compared by identity; undefined removes. */
  setFact(name: string, value: unknown): void {
    if (this.#facts.get(name) === value) return
    if (value === undefined) this.#facts.delete(name)
    else this.#facts.set(name, value)
    this.#wake(`fact:${name}`)
  }

  /** Derives everything that is stale; afterwards `outputs` holds the consequences. */
  settle(): void {
    for (let stage = 0; stage < this.#stages.length; stage++) {
      const dirty = this.#dirty[stage]
      if (dirty === undefined || dirty.size === 0) continue
      const keys = [...dirty].sort()
      dirty.clear()
      for (const key of keys) this.#derive(stage, key)
    }
  }

  #derive(position: number, key: ObjectKey): void {
    const stage = this.#stages[position]
    const nodes = this.#nodes[position]
    if (stage === undefined || nodes === undefined) return
    const state = this.#objects.get(key)
    const before = nodes.get(key)
    if (state === undefined) {
      if (before !== undefined) this.#replace(position, before, undefined, new Set())
      this.keySets.set(`${stage.name}:${key}`, [])
      nodes.delete(key)
      return
    }
    const node = before ?? { stage: position, key, reads: new Set(), derived: {}, valueText: '' }
    nodes.set(key, node)
    this.#reads = new Set()
    this.#asked = []
    const derived = deriveSafely(stage, state, this.#views[position] as Reader)
    this.keySets.set(`${stage.name}:${key}`, this.#asked)
    this.#replace(position, node, derived, this.#reads)
  }

  #replace(position: number, node: Node, derived: Derived | undefined, reads: Set<ReadKey>): void {
    for (const read of node.reads) if (!reads.has(read)) this.#forgetReader(read, node)
    for (const read of reads) if (!node.reads.has(read)) this.#readersOf(read).add(node)
    node.reads = reads
    const before = node.derived
    node.derived = derived ?? {}
    this.#recontribute(position, before.contributions ?? [], node.derived.contributions ?? [])
    const stage = this.#stages[position]
    const owner = `${stage?.name}:${node.key}`
    this.outputs.replaceResources(owner, before.resources ?? [], node.derived.resources ?? [])
    if (before.status !== undefined || node.derived.status !== undefined) {
      this.outputs.replaceStatus(node.key, node.derived.status)
    }
    this.outputs.replaceDeployment(node.key, before.deployment, node.derived.deployment)
    const text = node.derived.value === undefined ? '' : JSON.stringify(node.derived.value)
    if (text === node.valueText) return
    node.valueText = text
    this.#wake(`value:${stage?.name}:${node.key}`)
  }

  #recontribute(
    position: number,
    before: readonly Contribution[],
    after: readonly Contribution[],
  ): void {
    if (hasSameContent(before, after)) return
    this.#contribute(before, after)
    for (const [relation] of after) this.#keepInOrder(relation, { last: position })
  }

  #contribute(before: readonly Contribution[], after: readonly Contribution[]): void {
    const change = new Map<string, { relation: string; member: string; by: number }>()
    const count = ([name, key, member]: Contribution, by: number) => {
      const relation = `${name}\0${key}`
      const id = `${relation}\0${member}`
      const entry = change.get(id) ?? { relation, member, by: 0 }
      entry.by += by
      change.set(id, entry)
    }
    for (const contribution of before) count(contribution, -1)
    for (const contribution of after) count(contribution, 1)
    for (const { relation, member, by } of change.values()) {
      if (by !== 0) this.#adjust(relation, member, by)
    }
  }

  /** A relation that is read before it is complete would make the outcome depend on batches. */
  #keepInOrder(relation: string, seen: { last?: number; first?: number }): void {
    const known = this.#relationStages.get(relation) ?? {
      last: -1,
      first: Number.POSITIVE_INFINITY,
    }
    known.last = Math.max(known.last, seen.last ?? -1)
    known.first = Math.min(known.first, seen.first ?? Number.POSITIVE_INFINITY)
    this.#relationStages.set(relation, known)
    if (known.first <= known.last) throw new Error(`relation ${relation} is not complete yet`)
  }

  #adjust(relation: string, member: string, by: number): void {
    const members = this.#relations.get(relation) ?? new Map<string, number>()
    this.#relations.set(relation, members)
    const before = members.get(member) ?? 0
    const total = before + by
    if (total === 0) members.delete(member)
    else members.set(member, total)
    if (members.size === 0) this.#relations.delete(relation)
    // Readers see who is a member, not how often.
    if ((before === 0) !== (total === 0)) this.#wake(`relation:${relation}`)
  }

  #reader(position: number): Reader {
    const see = (key: ReadKey) => void this.#reads.add(key)
    return {
      object: (kind, namespace, name) => {
        const key = objectKey({ kind, namespace, name })
        see(`object:${key}`)
        return this.#objects.get(key)
      },
      index: (name, key) => {
        see(`index:${name}\0${key}`)
        return this.#readIndex(`${name}\0${key}`)
      },
      value: <Value>(stage: string, ref: ObjectRef) => {
        const earlier = this.#stageByName.get(stage)
        if (earlier === undefined || earlier >= position) throw new Error(`${stage} is not earlier`)
        const key = objectKey(ref)
        see(`value:${stage}:${key}`)
        return this.#nodes[earlier]?.get(key)?.derived.value as Value | undefined
      },
      members: (relation, key) => {
        this.#keepInOrder(relation, { first: position })
        see(`relation:${relation}\0${key}`)
        return [...(this.#relations.get(`${relation}\0${key}`)?.keys() ?? [])].sort()
      },
      count: (relation, key) => {
        this.#keepInOrder(relation, { first: position })
        see(`relation:${relation}\0${key}`)
        return this.#relations.get(`${relation}\0${key}`)?.size ?? 0
      },
      fact: <Value>(name: string) => {
        see(`fact:${name}`)
        return this.#facts.get(name) as Value | undefined
      },
      requestKeySet: (request) => void this.#asked.push(request),
    }
  }

  #readIndex(id: string): readonly ObjectState[] {
    const states: ObjectState[] = []
    for (const key of [...(this.#indexed.get(id) ?? [])].sort()) {
      const state = this.#objects.get(key)
      if (state !== undefined) states.push(state)
    }
    return states
  }

  #reindex(key: ObjectKey, before: ObjectState | undefined, after: ObjectState | undefined): void {
    const kind = (after ?? before)?.ref.kind ?? ''
    for (const index of this.#indexes) {
      if (!index.kinds.includes(kind)) continue
      const old = before === undefined ? [] : index.keys(before)
      const fresh = after === undefined ? [] : index.keys(after)
      for (const name of new Set([...old, ...fresh])) {
        this.#setIndexed(`${index.name}\0${name}`, key, fresh.includes(name))
      }
    }
  }

  #setIndexed(id: string, key: ObjectKey, present: boolean): void {
    const members = this.#indexed.get(id) ?? new Set()
    if (present) members.add(key)
    else members.delete(key)
    if (members.size === 0) this.#indexed.delete(id)
    else this.#indexed.set(id, members)
    this.#wake(`index:${id}`)
  }

  /** Keys that nobody reads any more are not kept: names come and go with what users write. */
  #forgetReader(read: ReadKey, node: Node): void {
    const readers = this.#readers.get(read)
    readers?.delete(node)
    if (readers?.size === 0) this.#readers.delete(read)
  }

  #readersOf(read: ReadKey): Set<Node> {
    const found = this.#readers.get(read)
    if (found !== undefined) return found
    const fresh = new Set<Node>()
    this.#readers.set(read, fresh)
    return fresh
  }

  #wake(read: ReadKey): void {
    const readers = this.#readers.get(read)
    if (readers === undefined) return
    if (readers.size === 0) this.#readers.delete(read)
    for (const node of readers) this.#dirty[node.stage]?.add(node.key)
  }

  #forEachStageOf(kind: string, visit: (position: number) => void): void {
    this.#stages.forEach((stage, position) => {
      if (stage.kinds.includes(kind)) visit(position)
    })
  }
}
