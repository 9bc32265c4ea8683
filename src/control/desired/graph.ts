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

import type { DocumentRequest } from '../../ground/model/key-sets.ts'
import type { ObjectKey, ObjectRef } from '../../ground/model/names.ts'
import { objectKey } from '../../ground/model/names.ts'
import type { Resource, ResourceKey } from '../../ground/model/resources.ts'
import type { Deployment } from './deployment/plan.ts'
import { deriveObject } from './derive-object.ts'
import { KeySetRequests } from './key-set-requests.ts'
import { type IndexDefinition, ObjectIndexes } from './object-indexes.ts'
import type { ObjectState } from './object-state.ts'
import { OutputStore } from './output-store.ts'
import { type PartOwner, PartStore } from './parts.ts'
import { type Contribution, Relations } from './relations.ts'
import { hasSameContent } from './same-content.ts'
import { namesOfReads, Sources, type SourceType, valueName } from './sources.ts'

export type { Contribution } from './relations.ts'

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
  /**
   * Derives a part of the derivation from inputs. The part is not derived again as long as its inputs have the
   * same content and nothing that the derivation has read changes. `derive` must be the same function each
   * time and depend on nothing else, and a part must not request key sets.
   */
  part<Inputs extends readonly unknown[], Result>(
    derive: (read: Reader, ...inputs: Inputs) => Result,
    ...inputs: Inputs
  ): Result
  /** Requests a key set for as long as the derivation exists; the fetched keys are read as an input. */
  requestKeySet(request: DocumentRequest): void
}

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
  /**
   * Returns what `derive` reads of its object; omitted if it reads the whole object. A new version whose inputs have
   * the same content is not derived, unless something else that the stage has read changes. Such a stage derives no
   * status.
   */
  inputs?(self: ObjectState): readonly unknown[]
  derive(self: ObjectState, read: Reader): Derived
}

/** What one stage read and derived for one object. */
interface DerivationTrace {
  readonly stage: string
  readonly reads: readonly string[]
  readonly resources: readonly ResourceKey[]
  /** The status as derived, including parts such as `own` that are not written. */
  readonly status: Derived['status']
}

interface GraphNode extends PartOwner {
  readonly stage: number
  readonly key: ObjectKey
  /** Parts whose content did not change are the same objects as before. */
  derived: Derived
}

const nothing: readonly never[] = []
/** What many stages derive for most objects. */
const noOutput: Derived = {}

export class Graph {
  readonly outputs = new OutputStore()
  readonly keySets = new KeySetRequests()
  readonly #stages: readonly Stage[]
  readonly #stageByName: ReadonlyMap<string, number>
  readonly #stagesByKind = new Map<string, readonly number[]>()
  readonly #objects = new Map<ObjectKey, ObjectState>()
  readonly inputs = new Map<string, unknown>()
  readonly #indexes: ObjectIndexes
  /** For each stage, its nodes by object key. */
  readonly #nodes: readonly Map<ObjectKey, GraphNode>[]
  readonly #sources = new Sources<GraphNode>()
  readonly #parts = new PartStore(this.#sources)
  readonly #relations = new Relations((name) => this.#wake('relation', name))
  /** For each stage, keys of the objects that must be derived again. */
  readonly #dirty: readonly Set<ObjectKey>[]
  /** For each stage, the reader that its derivations use; only one runs at a time. */
  readonly #views: readonly Reader[]
  #requested: readonly DocumentRequest[] = nothing

  constructor(stages: readonly Stage[], indexes: readonly IndexDefinition[]) {
    this.#stages = stages
    this.#indexes = new ObjectIndexes(indexes)
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
  readsOf(stage: string, ref: ObjectRef): readonly string[] {
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
      return [{ stage: name, reads: namesOfReads(node), resources: keys, status }]
    })
  }

  /** `key` is the key of the object. Callers pass the string that they have, because sharing it in all maps saves memory. */
  setObject(state: ObjectState, key = objectKey(state.ref)): void {
    this.#replaceObject(key, state)
  }

  removeObject(ref: ObjectRef): void {
    const key = objectKey(ref)
    if (this.#objects.has(key)) this.#replaceObject(key, undefined)
  }

  #replaceObject(key: ObjectKey, after: ObjectState | undefined): void {
    const before = this.#objects.get(key)
    if (after === undefined) this.#objects.delete(key)
    else this.#objects.set(key, after)
    for (const entry of this.#indexes.replace(key, before, after)) this.#wake('index', entry)
    this.#wake('object', key)
    const kind = (after ?? before)?.ref.kind ?? ''
    for (const stage of this.#stagesOf(kind)) {
      if (!this.#hasSameInputs(stage, before, after)) this.#dirty[stage]?.add(key)
    }
  }

  #hasSameInputs(stage: number, before: ObjectState | undefined, after: ObjectState | undefined) {
    const inputs = this.#stages[stage]?.inputs
    if (inputs === undefined || before === undefined || after === undefined) return false
    return hasSameContent(inputs(before), inputs(after))
  }

  /** Inputs are compared by identity. Setting an input to undefined removes it. */
  setInput(name: string, value: unknown): void {
    if (this.inputs.get(name) === value) return
    if (value === undefined) this.inputs.delete(name)
    else this.inputs.set(name, value)
    this.#wake('fact', name)
  }

  /** Derives everything that is out of date; then `outputs` is up to date. */
  settle(): void {
    for (let stage = 0; stage < this.#stages.length; stage++) {
      const dirty = this.#dirty[stage]
      if (dirty === undefined || dirty.size === 0) continue
      if (dirty.size === 1) {
        const [key] = dirty as Set<ObjectKey> & [ObjectKey]
        dirty.clear()
        this.#derive(stage, key)
        continue
      }
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
      if (before !== undefined) this.#remove(before)
      return
    }
    const node = before ?? this.#addNode(position, key)
    this.#requested = nothing
    this.#sources.begin(node)
    this.#parts.begin(node)
    const view = this.#views[position] as Reader
    const derived = deriveObject<Derived>((self) => stage.derive(self, view), state, noOutput)
    this.#parts.end(node)
    this.#sources.end(node)
    this.keySets.set(node, this.#requested)
    this.#replace(node, derived)
  }

  #addNode(stage: number, key: ObjectKey): GraphNode {
    const node: GraphNode = { stage, key, reads: nothing, parts: nothing, derived: noOutput }
    this.#nodes[stage]?.set(key, node)
    return node
  }

  #remove(node: GraphNode): void {
    this.#nodes[node.stage]?.delete(node.key)
    this.#sources.forget(node)
    this.#sources.disown(this.#valueOf(node))
    this.keySets.set(node, nothing)
    this.#replace(node, noOutput)
  }

  #replace(node: GraphNode, derived: Derived): void {
    const { derived: before, key } = node
    if (derived === before) return
    const { contributions = nothing, resources = nothing, status, value, deployment } = derived
    const hasSameValue = hasSameContent(before.value, value)
    const hasSameStatus = hasSameContent(before.status, status)
    const kept = {
      contributions: this.#relations.replace(
        node.stage,
        before.contributions ?? nothing,
        contributions,
      ),
      resources: this.outputs.replaceResources(node, before.resources ?? nothing, resources),
      status: hasSameStatus ? before.status : status,
      value: hasSameValue ? before.value : value,
      ...(deployment && { deployment }),
    }
    node.derived = isEmpty(derived) ? noOutput : kept
    // With the same conditions as before, the stored status and its transition times are kept.
    if (!hasSameStatus) this.outputs.replaceStatus(key, status)
    this.outputs.replaceDeployment(key, before.deployment, deployment)
    if (!hasSameValue) this.#wake('value', this.#valueOf(node))
  }

  /** The name of the value of a node. */
  #valueOf({ stage, key }: GraphNode): string {
    return valueName(this.#stages[stage]?.name ?? '', key)
  }

  #reader(position: number): Reader {
    const sources = this.#sources
    const parts = this.#parts
    const membersOf = (relation: string, key: string) =>
      this.#relations.read(position, relation, sources.read('relation', relation, key).name)
    const read: Reader = {
      object: (kind, namespace, name) =>
        this.#objects.get(sources.read('object', kind, namespace, name).name),
      index: (name, key) =>
        this.#statesOf(this.#indexes.read(sources.read('index', name, key).name)),
      value: <Value>(stage: string, ref: ObjectRef) => {
        const earlier = this.#stageByName.get(stage)
        if (earlier === undefined || earlier >= position) throw new Error(`${stage} is not earlier`)
        const source = sources.read('value', stage, ref.kind, ref.namespace, ref.name)
        source.owner ??= this.#nodes[earlier]?.get(objectKey(ref))
        return source.owner?.derived.value as Value | undefined
      },
      members: (relation, key) => {
        const members = membersOf(relation, key)
        return members === undefined ? nothing : [...members.keys()].sort()
      },
      count: (relation, key) => membersOf(relation, key)?.size ?? 0,
      input: <Value>(name: string) =>
        this.inputs.get(sources.read('fact', name).name) as Value | undefined,
      part: (derive, ...inputs) => parts.next(derive, inputs, read),
      requestKeySet: (request) => {
        if (parts.isRunning) throw new Error('a part of a derivation cannot request key sets')
        this.#requested = [...this.#requested, request]
      },
    }
    return read
  }

  #statesOf(keys: readonly ObjectKey[]): readonly ObjectState[] {
    const states: ObjectState[] = []
    for (const key of keys) {
      const state = this.#objects.get(key)
      if (state !== undefined) states.push(state)
    }
    return states
  }

  #wake(type: SourceType, name: string): void {
    for (const node of this.#sources.readersOf(type, name)) {
      this.#dirty[node.stage]?.add(node.key)
      node.parts = nothing
    }
  }

  /** Positions of the stages that derive a kind. */
  #stagesOf(kind: string): readonly number[] {
    let positions = this.#stagesByKind.get(kind)
    if (positions === undefined) {
      positions = this.#stages.flatMap(({ kinds }, position) =>
        kinds.includes(kind) ? [position] : [],
      )
      this.#stagesByKind.set(kind, positions)
    }
    return positions
  }
}

function isEmpty(derived: Derived): boolean {
  for (const _ in derived) return false
  return true
}
