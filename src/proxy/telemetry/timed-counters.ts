/**
 * Counts, times and bytes of what has ended, such as requests. The label combination is found by walking a tree of the values, so
 * that no key string is built per request; every node remembers its last child, because traffic
 * repeats itself.
 */
import type { Series } from './metric-definitions.ts'

export type Label = string | number

class Node {
  readonly #children = new Map<Label, Node>()
  #lastLabel: Label | undefined
  #lastChild: Node | undefined
  leaf: Leaf | undefined

  find(label: Label): Node | undefined {
    if (label === this.#lastLabel) return this.#lastChild
    const child = this.#children.get(label)
    if (child !== undefined) this.#remember(label, child)
    return child
  }

  add(label: Label): Node {
    const child = new Node()
    this.#children.set(label, child)
    this.#remember(label, child)
    return child
  }

  #remember(label: Label, child: Node): void {
    this.#lastLabel = label
    this.#lastChild = child
  }
}

/** The counters of one label combination. */
class Leaf {
  readonly labels: readonly string[]
  readonly #buckets: Float64Array
  #count = 0
  #bytes = 0
  #seconds = 0

  constructor(labels: readonly string[], buckets: number) {
    this.labels = labels
    this.#buckets = new Float64Array(buckets)
  }

  record(bucket: number, seconds: number, bytes: number): void {
    this.#count++
    this.#bytes += bytes
    this.#seconds += seconds
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1
  }

  snapshot(): TimedSnapshot {
    const { labels } = this
    return {
      count: { labels, values: [this.#count] },
      bytes: { labels, values: [this.#bytes] },
      duration: { labels, values: [...this.#buckets, this.#seconds] },
    }
  }
}

export interface TimedSnapshot {
  readonly count: Series
  readonly bytes: Series
  readonly duration: Series
}

/** Stands for every combination beyond the bound. */
const overflow = 'overflow'

export class TimedCounters {
  readonly #root = new Node()
  readonly #leaves: Leaf[] = []
  readonly #bounds: readonly number[]
  readonly #describe: (labels: readonly Label[]) => readonly string[]
  readonly #most: number
  #overflow: Leaf | undefined

  /**
   * `bounds`: upper bounds of the duration's buckets, in seconds. `describe`: the texts of a label
   * combination, asked for once. `most`: how many combinations are kept apart.
   */
  constructor(
    bounds: readonly number[],
    describe: (labels: readonly Label[]) => readonly string[],
    most = 10_000,
  ) {
    this.#bounds = bounds
    this.#describe = describe
    this.#most = most
  }

  /** Counts one. */
  record(labels: readonly Label[], seconds: number, bytes: number): void {
    let node: Node | undefined = this.#root
    for (const label of labels) {
      node = node.find(label)
      if (node === undefined) break
    }
    const leaf = node?.leaf ?? this.#leafFor(labels)
    leaf.record(this.#bucketOf(seconds), seconds, bytes)
  }

  #leafFor(labels: readonly Label[]): Leaf {
    if (this.#leaves.length >= this.#most) {
      this.#overflow ??= this.#newLeaf(this.#describe(labels).map(() => overflow))
      return this.#overflow
    }
    let node = this.#root
    for (const label of labels) node = node.find(label) ?? node.add(label)
    node.leaf = this.#newLeaf(this.#describe(labels))
    return node.leaf
  }

  #newLeaf(labels: readonly string[]): Leaf {
    const leaf = new Leaf(labels, this.#bounds.length + 1)
    this.#leaves.push(leaf)
    return leaf
  }

  #bucketOf(seconds: number): number {
    let bucket = 0
    while (bucket < this.#bounds.length && seconds > (this.#bounds[bucket] ?? 0)) bucket++
    return bucket
  }

  snapshot(): readonly TimedSnapshot[] {
    return this.#leaves.map((leaf) => leaf.snapshot())
  }
}
