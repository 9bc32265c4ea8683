/** Relations: sets of members that derivations contribute, by key. */
import { hasSameContent } from './same-content.ts'

export type Contribution = readonly [relation: string, key: string, member: string]

/** The last stage that contributes to a relation, and the first that reads it. */
type RelationStages = { last: number; first: number }

export class Relations {
  readonly #stages = new Map<string, RelationStages>()
  /** `relation \0 key` -> member -> number of times that it was contributed. */
  readonly #members = new Map<string, Map<string, number>>()
  readonly #onChange: (name: string) => void

  /** `onChange` is called with `relation \0 key` if a member is added or removed. */
  constructor(onChange: (name: string) => void) {
    this.#onChange = onChange
  }

  /** Members by how often they were contributed, for a stage that reads them. `name` is `relation \0 key`. */
  read(stage: number, relation: string, name: string): ReadonlyMap<string, number> | undefined {
    const stages = this.#stagesOf(relation)
    if (stage < stages.first) stages.first = stage
    assertComplete(relation, stages)
    return this.#members.get(name)
  }

  /** Replaces what a stage contributes for an object. Returns `before` if it is the same, otherwise `after`. */
  replace(
    stage: number,
    before: readonly Contribution[],
    after: readonly Contribution[],
  ): readonly Contribution[] {
    if (hasSameContent(before, after)) return before
    this.#contribute(before, after)
    for (const [relation] of after) {
      const stages = this.#stagesOf(relation)
      if (stage > stages.last) stages.last = stage
      assertComplete(relation, stages)
    }
    return after
  }

  #contribute(before: readonly Contribution[], after: readonly Contribution[]): void {
    if (before.length === 0) {
      for (const [relation, key, member] of after)
        this.#adjust([relation, key].join('\0'), member, 1)
      return
    }
    const change = new Map<string, { name: string; member: string; by: number }>()
    const count = ([relation, key, member]: Contribution, by: number) => {
      const name = `${relation}\0${key}`
      const id = `${name}\0${member}`
      const entry = change.get(id) ?? { name, member, by: 0 }
      entry.by += by
      change.set(id, entry)
    }
    for (const contribution of before) count(contribution, -1)
    for (const contribution of after) count(contribution, 1)
    for (const { name, member, by } of change.values()) {
      if (by !== 0) this.#adjust(name, member, by)
    }
  }

  #stagesOf(relation: string): RelationStages {
    let stages = this.#stages.get(relation)
    if (stages === undefined) {
      stages = { last: -1, first: Number.POSITIVE_INFINITY }
      this.#stages.set(relation, stages)
    }
    return stages
  }

  #adjust(name: string, member: string, by: number): void {
    const members = this.#members.get(name) ?? new Map<string, number>()
    this.#members.set(name, members)
    const before = members.get(member) ?? 0
    const total = before + by
    if (total === 0) members.delete(member)
    else members.set(member, total)
    if (members.size === 0) this.#members.delete(name)
    // Only the set of members is visible to readers, not how often each was contributed.
    if ((before === 0) !== (total === 0)) this.#onChange(name)
  }
}

/** Throws if a stage reads a relation that is not complete: the result would depend on batching. */
function assertComplete(relation: string, { first, last }: RelationStages): void {
  if (first <= last) throw new Error(`relation ${relation} is not complete yet`)
}
