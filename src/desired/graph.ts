/**
 * Derives desired state and conditions incrementally from all observed objects.
 *
 * A *stage* derives one node for each object of its kinds. While a node is derived, everything that it
 * reads is recorded. When one of these inputs changes, only the nodes that read it are derived again,
 * in the order of the stages. The cost of a change is thus proportional to what it affects, and
 * `explain` can show why a node has its value.
 *
 * ```
 *   objects ──► index sets ──► stage 1 ──► stage 2 ──► … ──► resources, statuses
 *                                 └─ values, relations ─┘
 * ```
 *
 * A stage may read objects, indexes and inputs, and only values and relations of earlier stages, so there
 * are no cycles. Stages are pure functions: no clock, no randomness, sorted iteration.
 */
import { hasSameContent } from '../base/same-content.ts'
import type { KeySetRequest } from '../model/key-sets.ts'
import type { ObjectKey, ObjectRef } from '../model/names.ts'
import { objectKey } from '../model/names.ts'
import type { Resource, ResourceKey } from '../model/resources.ts'
import type { Deployment } from './deployment/plan.ts'
import { KeySetRequests } from './key-set-requests.ts'
import { type ObjectState, refusalAfter } from './object-state.ts'
import { OutputStore } from './output-store.ts'

/** Identifies one input that a derivation can read; dependencies are recorded per key. */
type ReadKey = string

export interface Reader {
  /** The state of an object, even if all its versions were refused; undefined if the object is unknown. */
  object(kind: string, namespace: string, name: string): ObjectState | undefined
  /** The objects that an index has under a key, sorted by kind, namespace and name. */
  index(name: string, key: string): readonly ObjectState[]
  /** The value that an earlier stage derived for an object. */
  value<Value>(stage: string, ref: ObjectRef): Value | undefined
  /** The members that earlier stages contributed to a relation under a key, sorted. */
  members(relation: string, key: string): readonly string[]
  /** Number of members of a relation under a key. */
  count(relation: string, key: string): number
  /** An input that is not an object, such as what a proxy has acknowledged. */
  input<Value>(name: string): Value | undefined
  /** Requests a key set for as long as the derivation exists; the fetched keys are read as an input. */
  requestKeySet(request: KeySetRequest): void
}

export type Contribution = readonly [relation: string, key: string, member: string]

/** What a stage derives for one object. */
export interface Derived {
  readonly resources?: readonly Resource[]
  /** The status subresource to write, without transition times. */
  readonly status?: Readonly<Record<string, unknown>>
  /** Value that later stages read. If its content does not change, they are not derived again. */
  readonly value?: unknown
  readonly contributions?: readonly Contribution[]
  /** What must be deployed for the object; omitted if the stage does not decide this. */
  readonly deployment?: Deployment
}

export interface Stage {
  readonly name: string
  readonly kinds: readonly string[]
  derive(self: ObjectState, read: Reader): Derived
}

/**
 * If a stage throws for an object, the object is derived as a refused one: its status reports the error,
 * and a policy closes its targets. Other objects are not affected.
 */
function deriveSafely(stage: Stage, state: ObjectState, read: Reader): Derived {
  try {
    return stage.derive(state, read)
  } catch (error) {
    const refused = refusalAfter(error, state)
    return refused === undefined ? {} : stage.derive({ ...state, object: undefined, refused }, read)
  }
}

/** Defines an index: `keys` computes the keys of an object from the object alone. */
export interface IndexDefinition {
  readonly name: string
  readonly kinds: readonly string[]
  keys(state: ObjectState): readonly string[]
}

/** What one stage read and derived for one object. */
interface DerivationTrace {
  readonly stage: string
  readonly reads: readonly ReadKey[]
  readonly resources: readonly ResourceKey[]
  /** The status as derived, including parts such as `own` that are not written. */
  readonly status: Derived['status']
}

interface Node {
  readonly stage: number
  readonly key: ObjectKey
  reads: Set<ReadKey>
  derived: Derived
  /** JSON text of `derived.value`, to detect changes. */
  valueText: string
}

export class Graph {
  readonly outputs = new OutputStore()
  readonly keySets = new KeySetRequests()
  readonly #stages: readonly Stage[]
  readonly #indexes: readonly IndexDefinition[]
  readonly #stageByName: ReadonlyMap<string, number>
  readonly #objects = new Map<ObjectKey, ObjectState>()
  readonly inputs = new Map<string, unknown>()
  /** `index name \0 key` -> keys of the indexed objects. */
  readonly #indexed = new Map<string, Set<ObjectKey>>()
  /** For each stage, its nodes by object key. */
  readonly #nodes: readonly Map<ObjectKey, Node>[]
  readonly #readers = new Map<ReadKey, Set<Node>>()
  /** Relation key -> position of the last stage that contributes to it, and of the first that reads it. */
  readonly #relationStages = new Map<string, { last: number; first: number }>()
  /** `relation \0 key` -> member -> number of times that it was contributed. */
  readonly #relations = new Map<string, Map<string, number>>()
  /** For each stage, keys of the objects that must be derived again. */
  readonly #dirty: readonly Set<ObjectKey>[]
  /** For each stage, the reader that its derivations use; only one runs at a time. */
  readonly #views: readonly Reader[]
  /** Inputs that the current derivation has read so far. */
  #reads = new Set<ReadKey>()
  #requested: KeySetRequest[] = []

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

  /** All known objects, in no particular order. */
  objects(): IterableIterator<ObjectState> {
    return this.#objects.values()
  }

  /** The value that a stage derived for an object, for display outside the graph. */
  valueOf<Value>(stage: string, ref: ObjectRef): Value | undefined {
    const position = this.#stageByName.get(stage)
    if (position === undefined) return undefined
    return this.#nodes[position]?.get(objectKey(ref))?.derived.value as Value | undefined
  }

  /** Inputs that a stage read when it last derived an object; for users of the package. */
  readsOf(stage: string, ref: ObjectRef): readonly ReadKey[] {
    return this.derivationsOf(ref).find((derived) => derived.stage === stage)?.reads ?? []
  }

  /** All derivations of an object in the order of the stages, with what they read and derived. */
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

  /** Inputs are compared by identity. Setting an input to undefined removes it. */
  setInput(name: string, value: unknown): void {
    if (this.inputs.get(name) === value) return
    if (value === undefined) this.inputs.delete(name)
    else this.inputs.set(name, value)
    this.#wake(`fact:${name}`)
  }

  /** Derives everything that is out of date; then `outputs` is up to date. */
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
    this.#requested = []
    const derived = deriveSafely(stage, state, this.#views[position] as Reader)
    this.keySets.set(`${stage.name}:${key}`, this.#requested)
    this.#replace(position, node, derived, this.#reads)
  }

  #replace(position: number, node: Node, derived: Derived | undefined, reads: Set<ReadKey>): void {
    for (const read of node.reads) if (!reads.has(read)) this.#forgetReader(read, node)
    for (const read of reads) {
      if (!node.reads.has(read)) {
        this.#readers.set(read, (this.#readers.get(read) ?? new Set()).add(node))
      }
    }
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

  /** Throws if a stage reads a relation that is not complete: the result would depend on batching. */
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
    // Only the set of members is visible to readers, not how often each was contributed.
    if ((before === 0) !== (total === 0)) this.#wake(`relation:${relation}`)
  }

  #reader(position: number): Reader {
    const record = (key: ReadKey) => void this.#reads.add(key)
    return {
      object: (kind, namespace, name) => {
        const key = objectKey({ kind, namespace, name })
        record(`object:${key}`)
        return this.#objects.get(key)
      },
      index: (name, key) => {
        record(`index:${name}\0${key}`)
        return this.#readIndex(`${name}\0${key}`)
      },
      value: <Value>(stage: string, ref: ObjectRef) => {
        const earlier = this.#stageByName.get(stage)
        if (earlier === undefined || earlier >= position) throw new Error(`${stage} is not earlier`)
        const key = objectKey(ref)
        record(`value:${stage}:${key}`)
        return this.#nodes[earlier]?.get(key)?.derived.value as Value | undefined
      },
      members: (relation, key) => {
        this.#keepInOrder(relation, { first: position })
        record(`relation:${relation}\0${key}`)
        return [...(this.#relations.get(`${relation}\0${key}`)?.keys() ?? [])].sort()
      },
      count: (relation, key) => {
        this.#keepInOrder(relation, { first: position })
        record(`relation:${relation}\0${key}`)
        return this.#relations.get(`${relation}\0${key}`)?.size ?? 0
      },
      input: <Value>(name: string) => {
        record(`fact:${name}`)
        return this.inputs.get(name) as Value | undefined
      },
      requestKeySet: (request) => void this.#requested.push(request),
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

  /** Removes keys that nothing reads any more, since users can create any number of names. */
  #forgetReader(read: ReadKey, node: Node): void {
    const readers = this.#readers.get(read)
    readers?.delete(node)
    if (readers?.size === 0) this.#readers.delete(read)
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
