/**
 * Counts of values in exponential buckets: native histograms of Prometheus, exponential histograms of OpenTelemetry.
 * With scale s, bucket i counts values in (b^i, b^(i+1)], with b = 2^(2^-s). Counts of a lower scale are sums of two
 * neighboring buckets, so counts of different scales can be added.
 */

export interface ExponentialCounts {
  readonly scale: number
  /** Number of values up to `zeroThreshold`. */
  readonly zeros: number
  /** Index of the bucket of the first count. */
  readonly offset: number
  readonly counts: readonly number[]
}

/** Values up to this one are counted as zeros. It is the default of Prometheus. */
export const zeroThreshold = 2 ** -128

/** Scale of new counters. Bounds of buckets differ by 9 %. */
const firstScale = 3
/** Maximum number of buckets. With more, the scale is reduced. */
const maxBuckets = 160
/** Number of buckets by which memory grows. */
const growth = 16

const perOctave = 2 ** firstScale
const bounds = Array.from({ length: perOctave }, (_, at) => 2 ** (at / perOctave))

/** One double, and its higher 32 bits: sign, 11 bits of the exponent, and the beginning of the fraction. */
const double = new Float64Array(1)
const words = new Uint32Array(double.buffer)
const high = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 1 : 0
const exponentBias = 1_023

/** Returns the bucket of a value above `zeroThreshold`, in the first scale. */
function bucketOf(value: number): number {
  double[0] = value
  const word = words[high] ?? 0
  const exponent = (word >>> 20) - exponentBias
  words[high] = (word & 0xfffff) | (exponentBias << 20)
  const fraction = double[0]
  let bucket = exponent * perOctave - 1
  for (let at = 0; at < perOctave && fraction > (bounds[at] ?? 0); at++) bucket++
  return bucket
}

/** The counts of one series. Recording allocates memory only for new buckets. */
export class ExponentialCounter {
  #scale = firstScale
  #zeros = 0
  #offset = 0
  #counts = new Float64Array(0)

  record(value: number): void {
    if (!(value > zeroThreshold)) {
      this.#zeros++
      return
    }
    const bucket = bucketOf(value)
    let at = (bucket >> (firstScale - this.#scale)) - this.#offset
    if (at < 0 || at >= this.#counts.length) {
      this.#makeRoom(bucket)
      at = (bucket >> (firstScale - this.#scale)) - this.#offset
    }
    this.#counts[at] = (this.#counts[at] ?? 0) + 1
  }

  #makeRoom(bucket: number): void {
    const { scale, offset, counts } = this.snapshot()
    const isEmpty = counts.length === 0
    let shift = 0
    const first = () => {
      const wanted = (bucket >> (firstScale - scale)) >> shift
      return isEmpty ? wanted : Math.min(wanted, offset >> shift)
    }
    const end = () => {
      const wanted = (bucket >> (firstScale - scale)) >> shift
      return 1 + (isEmpty ? wanted : Math.max(wanted, (offset + counts.length - 1) >> shift))
    }
    while (end() - first() > maxBuckets) shift++
    const size = Math.min(maxBuckets, Math.ceil((end() - first()) / growth) * growth)
    this.#scale = scale - shift
    this.#offset = first()
    this.#counts = new Float64Array(size)
    addInto(this.#counts, this.#offset, offset, counts, shift)
  }

  /** Returns the counts without empty buckets at both ends. */
  snapshot(): ExponentialCounts {
    return trimmed(this.#scale, this.#zeros, this.#offset, this.#counts)
  }
}

/** Adds counts to those of a scale that is lower by `shift`. */
function addInto(
  to: { [at: number]: number },
  toOffset: number,
  offset: number,
  counts: ArrayLike<number>,
  shift: number,
  sign = 1,
): void {
  for (let at = 0; at < counts.length; at++) {
    const target = ((offset + at) >> shift) - toOffset
    to[target] = (to[target] ?? 0) + sign * (counts[at] ?? 0)
  }
}

function trimmed(
  scale: number,
  zeros: number,
  offset: number,
  all: ArrayLike<number>,
): ExponentialCounts {
  let first = 0
  let end = all.length
  while (end > 0 && all[end - 1] === 0) end--
  while (first < end && all[first] === 0) first++
  const counts = Array.from({ length: end - first }, (_, at) => all[first + at] ?? 0)
  return { scale, zeros, offset: counts.length === 0 ? 0 : offset + first, counts }
}

/** Adds up the counts of two counters. */
export function addExponential(a: ExponentialCounts, b: ExponentialCounts): ExponentialCounts {
  const parts = [a, b].filter(({ counts }) => counts.length > 0)
  let scale = Math.min(a.scale, b.scale)
  const first = () => Math.min(...parts.map((part) => part.offset >> (part.scale - scale)))
  const last = () =>
    Math.max(...parts.map((part) => (part.offset + part.counts.length - 1) >> (part.scale - scale)))
  while (last() - first() >= maxBuckets) scale--
  const offset = parts.length === 0 ? 0 : first()
  const sum = new Array<number>(parts.length === 0 ? 0 : last() - offset + 1).fill(0)
  for (const part of parts) addInto(sum, offset, part.offset, part.counts, part.scale - scale)
  return trimmed(scale, a.zeros + b.zeros, offset, sum)
}

/** Returns what a counter has counted since `before`, which is an earlier snapshot of it. */
export function exponentialSince(
  now: ExponentialCounts,
  before: ExponentialCounts | undefined,
): ExponentialCounts {
  if (before === undefined) return now
  const rest = [...now.counts]
  addInto(rest, now.offset, before.offset, before.counts, before.scale - now.scale, -1)
  return trimmed(now.scale, now.zeros - before.zeros, now.offset, rest)
}
