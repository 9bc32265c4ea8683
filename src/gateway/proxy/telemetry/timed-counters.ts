/**
 * Counts, durations and bytes of finished requests and other events, by label combination. A combination is
 * found in a tree of label values, so that no key is built for each request. Every node caches its last
 * child, because traffic repeats itself.
 */
import type { Exemplar, ExemplarTrace } from './exemplar.ts'
import { ExponentialCounter } from './exponential.ts'
import {
  type MetricDefinition,
  type MetricName,
  metricDefinitions,
  type Series,
} from './metric-definitions.ts'

export type Label = string | number

class Node {
  /** Undefined while there is only one child, which is cached below. That is so for most routes. */
  #children: Map<Label, Node> | undefined
  #lastLabel: Label | undefined
  #lastChild: Node | undefined
  leaf: Leaf | undefined

  find(label: Label): Node | undefined {
    if (label === this.#lastLabel) return this.#lastChild
    const child = this.#children?.get(label)
    if (child !== undefined) this.#remember(label, child)
    return child
  }

  add(label: Label): Node {
    const child = new Node()
    if (this.#lastLabel !== undefined && this.#lastChild !== undefined) {
      this.#children ??= new Map([[this.#lastLabel, this.#lastChild]])
      this.#children.set(label, child)
    }
    this.#remember(label, child)
    return child
  }

  #remember(label: Label, child: Node): void {
    this.#lastLabel = label
    this.#lastChild = child
  }
}

/** Positions in the memory of a leaf: count, bytes, seconds, then one count for each bucket. */
const countAt = 0
const bytesAt = 1
const secondsAt = 2
const bucketsAt = 3
/** Number of leaves that share one block of memory, because each block has an overhead. */
const leavesAtOnce = 64

/** The counters of one label combination. */
class Leaf {
  readonly labels: readonly string[]
  readonly #block: Float64Array
  readonly #from: number
  readonly #end: number
  /** Undefined until a value is recorded without a chosen bucket, and for counters. */
  #exponential: ExponentialCounter | undefined
  /** The newest exemplars of buckets. Undefined until a traced request is recorded. */
  #exemplars: Exemplar[] | undefined

  constructor(labels: readonly string[], block: Float64Array, from: number, size: number) {
    this.labels = labels
    this.#block = block
    this.#from = from
    this.#end = from + size
  }

  #add(slot: number, value: number): void {
    const at = this.#from + slot
    this.#block[at] = (this.#block[at] ?? 0) + value
  }

  record(bucket: number, seconds: number, bytes: number): void {
    this.#add(countAt, 1)
    this.#add(bytesAt, bytes)
    this.#add(secondsAt, seconds)
    this.#add(bucketsAt + bucket, 1)
  }

  recordExponential(seconds: number): void {
    this.#exponential ??= new ExponentialCounter()
    this.#exponential.record(seconds)
  }

  keepExemplar(bucket: number, seconds: number, { traceId, spanId }: ExemplarTrace): void {
    this.#exemplars ??= []
    const exemplar = { bucket, value: seconds, traceId, spanId, atMs: Date.now() }
    const at = this.#exemplars.findIndex((known) => known.bucket === bucket)
    if (at < 0) this.#exemplars.push(exemplar)
    else this.#exemplars[at] = exemplar
  }

  snapshot(): TimedSnapshot {
    return { count: this.count(), bytes: this.bytes(), duration: this.duration() }
  }

  count(): Series {
    return this.#sum(countAt)
  }

  bytes(): Series {
    return this.#sum(bytesAt)
  }

  #sum(slot: number): Series {
    return { labels: this.labels, values: [this.#block[this.#from + slot] ?? 0] }
  }

  duration(): Series {
    const [seconds = 0, ...buckets] = this.#block.subarray(this.#from + secondsAt, this.#end)
    const exponential = this.#exponential?.snapshot()
    return {
      labels: this.labels,
      values: [...buckets, seconds],
      ...(exponential && { exponential }),
      ...(this.#exemplars && { exemplars: [...this.#exemplars] }),
    }
  }
}

interface TimedSnapshot {
  readonly count: Series
  readonly bytes: Series
  readonly duration: Series
}

/** Value of all labels of the combinations beyond the limit. */
const overflow = 'overflow'

export class TimedCounters {
  readonly #root = new Node()
  readonly #leaves: Leaf[] = []
  readonly #bounds: readonly number[]
  readonly #describe: (labels: readonly Label[]) => readonly string[]
  readonly #maxCombinations: number
  #overflow: Leaf | undefined
  /** Memory of the newest leaves. */
  #block = new Float64Array(0)

  /**
   * `bounds` are the upper bounds of the duration buckets, in seconds. `describe` is called once for each
   * label combination and returns the texts of its labels. `maxCombinations` limits the combinations;
   * further ones are counted together.
   */
  constructor(
    bounds: readonly number[],
    describe: (labels: readonly Label[]) => readonly string[],
    maxCombinations = 10_000,
  ) {
    this.#bounds = bounds
    this.#describe = describe
    this.#maxCombinations = maxCombinations
  }

  /** `trace` is the sampled trace of the request, if it has one. */
  record(labels: readonly Label[], seconds: number, bytes: number, trace?: ExemplarTrace): void {
    const bucket = this.#bucketOf(seconds)
    const leaf = this.#leafOf(labels)
    leaf.record(bucket, seconds, bytes)
    if (this.#bounds.length === 0) return
    leaf.recordExponential(seconds)
    if (trace !== undefined) leaf.keepExemplar(bucket, seconds, trace)
  }

  /** Like `record`, for a bucket that the caller has chosen, and without exponential buckets. */
  recordIn(bucket: number, labels: readonly Label[], seconds: number, bytes: number): void {
    this.#leafOf(labels).record(bucket, seconds, bytes)
  }

  #leafOf(labels: readonly Label[]): Leaf {
    let node: Node | undefined = this.#root
    // Loop by index, because an iterator would take most of the time.
    for (let at = 0; at < labels.length && node !== undefined; at++) {
      node = node.find(labels[at] ?? '')
    }
    return node?.leaf ?? this.#addLeaf(labels)
  }

  #addLeaf(labels: readonly Label[]): Leaf {
    if (this.#leaves.length >= this.#maxCombinations) {
      this.#overflow ??= this.#newLeaf(this.#describe(labels).map(() => overflow))
      return this.#overflow
    }
    let node = this.#root
    for (const label of labels) node = node.find(label) ?? node.add(label)
    node.leaf = this.#newLeaf(this.#describe(labels))
    return node.leaf
  }

  #newLeaf(labels: readonly string[]): Leaf {
    const size = bucketsAt + this.#bounds.length + 1
    const index = this.#leaves.length % leavesAtOnce
    if (index === 0) this.#block = new Float64Array(leavesAtOnce * size)
    const leaf = new Leaf(labels, this.#block, index * size, size)
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

  counts(): readonly Series[] {
    return this.#leaves.map((leaf) => leaf.count())
  }

  durations(): readonly Series[] {
    return this.#leaves.map((leaf) => leaf.duration())
  }

  /** Returns the sums of the bytes, or of the values that were recorded instead of bytes. */
  sums(): readonly Series[] {
    return this.#leaves.map((leaf) => leaf.bytes())
  }
}

const plainTexts = (labels: readonly Label[]): readonly string[] => labels.map(String)

/** Makes counters with the duration buckets of a metric. */
export function timedCounters(
  metric: MetricName,
  describe = plainTexts,
  maxCombinations?: number,
): TimedCounters {
  const { buckets = [] }: MetricDefinition = metricDefinitions[metric]
  return new TimedCounters(buckets, describe, maxCombinations)
}
