/**
 * Embeddings of requests whose answers are stored, by which similar requests are found. The workers of a process share
 * the bytes, and each has its own index of them. A search compares the vectors of one group: requests that are equal
 * except for the last message of the user. It takes about 1 ms for 1,000 vectors of 1,536 dimensions.
 */
import { BroadcastChannel } from 'node:worker_threads'

/** The embedding of the last message of a request, and digests of its words. */
export interface RequestVector {
  /** A unit vector. */
  readonly vector: Float32Array
  /** Identifies the words of the message, in any order. */
  readonly words: string
  /** Identifies the words of the message in their order. */
  readonly sequence: string
}

interface StoredVector extends RequestVector {
  readonly group: string
  /** The key of the answer. */
  readonly key: string
  /** In milliseconds since the epoch. */
  readonly storedAt: number
  readonly expiresAt: number
}

/** A stored answer to a similar request. */
interface SimilarRequest {
  readonly key: string
  /** Cosine of the angle between the vectors. */
  readonly similarity: number
}

/** Estimated bytes of memory that an entry takes in addition to its vector. */
const overhead = 512

const channelName = 'sluice vectors of requests'

export class SimilarRequests {
  readonly #groups = new Map<string, Map<string, StoredVector>>()
  /** All entries, oldest first. */
  readonly #all = new Set<StoredVector>()
  readonly #maxBytes: number
  #bytes = 0
  #channel: BroadcastChannel | undefined

  /** `maxBytes` bounds the vectors of all workers together. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Starts to receive the vectors that other workers store. Idempotent. */
  open(): void {
    if (this.#channel !== undefined) return
    const channel = new BroadcastChannel(channelName)
    channel.onmessage = (event) => {
      const { entry, most } = (event as { readonly data: VectorMessage }).data
      this.#keep(entry, most)
    }
    // Does not keep the thread alive.
    channel.unref()
    this.#channel = channel
  }

  /**
   * Returns the most similar request of a group, if its similarity is at least `threshold`. Its answer is not older
   * than `since`, in milliseconds since the epoch.
   */
  find(
    group: string,
    asked: RequestVector,
    { threshold, since }: { readonly threshold: number; readonly since: number },
  ): SimilarRequest | undefined {
    const now = Date.now()
    let best: SimilarRequest | undefined
    for (const entry of this.#groups.get(group)?.values() ?? []) {
      if (entry.expiresAt <= now) this.#remove(entry)
      else if (entry.storedAt >= since && !isReordered(entry, asked)) {
        const similarity = dotProduct(entry.vector, asked.vector)
        if (similarity >= (best?.similarity ?? threshold)) best = { key: entry.key, similarity }
      }
    }
    return best
  }

  /** Stores the vector of a request. If its group has more than `most` vectors then, drops the oldest one. */
  add(entry: StoredVector, most: number): void {
    const vector = new Float32Array(new SharedArrayBuffer(entry.vector.byteLength))
    vector.set(entry.vector)
    const shared = { entry: { ...entry, vector }, most }
    this.#keep(shared.entry, most)
    this.#channel?.postMessage(shared)
  }

  /** Removes a request whose answer is no longer stored. */
  forget(group: string, key: string): void {
    const entry = this.#groups.get(group)?.get(key)
    if (entry !== undefined) this.#remove(entry)
  }

  #keep(entry: StoredVector, most: number): void {
    this.forget(entry.group, entry.key)
    const group = this.#groups.get(entry.group) ?? new Map<string, StoredVector>()
    this.#groups.set(entry.group, group)
    group.set(entry.key, entry)
    this.#all.add(entry)
    this.#bytes += sizeOf(entry)
    for (const oldest of group.values()) {
      if (group.size <= most) break
      this.#remove(oldest)
    }
    for (const oldest of this.#all) {
      if (this.#bytes <= this.#maxBytes) break
      this.#remove(oldest)
    }
  }

  #remove(entry: StoredVector): void {
    this.#all.delete(entry)
    this.#bytes -= sizeOf(entry)
    const group = this.#groups.get(entry.group)
    group?.delete(entry.key)
    if (group?.size === 0) this.#groups.delete(entry.group)
  }
}

/** The message that a worker sends to the others for each new vector. */
interface VectorMessage {
  readonly entry: StoredVector
  readonly most: number
}

const sizeOf = ({ vector }: StoredVector): number => vector.byteLength + overhead

/** Texts with the same words in another order may ask the opposite, such as `A to B` and `B to A`. */
const isReordered = (a: RequestVector, b: RequestVector): boolean =>
  a.words === b.words && a.sequence !== b.sequence

/** Vectors of another length are not similar. */
function dotProduct(a: Float32Array, b: Float32Array): number {
  const { length } = a
  if (length !== b.length) return -1
  // Four sums, because each addition would otherwise wait for the one before it.
  let [first, second, third, fourth] = [0, 0, 0, 0]
  let at = 0
  for (; at + 3 < length; at += 4) {
    first += (a[at] as number) * (b[at] as number)
    second += (a[at + 1] as number) * (b[at + 1] as number)
    third += (a[at + 2] as number) * (b[at + 2] as number)
    fourth += (a[at + 3] as number) * (b[at + 3] as number)
  }
  for (; at < length; at++) first += (a[at] as number) * (b[at] as number)
  return first + second + third + fourth
}

/** Largest number of dimensions of a vector. */
const maxDimensions = 8_192

/** Returns the unit vector with the same direction; undefined if the numbers have no direction, or are too many. */
export function unitVector(numbers: readonly unknown[]): Float32Array | undefined {
  if (numbers.length === 0 || numbers.length > maxDimensions) return undefined
  const vector = new Float32Array(numbers.length)
  let squares = 0
  for (const [at, value] of numbers.entries()) {
    if (typeof value !== 'number') return undefined
    vector[at] = value
    squares += value * value
  }
  const length = Math.sqrt(squares)
  if (!(length > 0 && Number.isFinite(length))) return undefined
  for (let at = 0; at < vector.length; at++) vector[at] = (vector[at] as number) / length
  return vector
}
