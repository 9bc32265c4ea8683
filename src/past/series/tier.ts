/** The buckets of one period, such as all minutes. The oldest are dropped if they take too many bytes. */
import { framesOf } from '../decisions/frame.ts'
import { BlockReader, type BlockVisitor, BlockWriter } from './block.ts'
import { type Bucket, limitSeries } from './bucket.ts'
import type { Segments } from './segments.ts'

/** Number of segments of a full tier. Only whole segments are dropped. */
const maxSegments = 16
/** Restarts begin no segment, but a clock that is set back may. */
const mostSegments = 4 * maxSegments

export class Tier {
  readonly periodMs: number
  readonly #segments: Segments
  readonly #segmentBytes: number
  readonly #segmentMs: number
  readonly #writer = new BlockWriter()
  /** The segment that was written last. */
  #current: number | undefined
  /** End of the newest bucket; undefined if there is none. */
  #endMs: number | undefined

  /** A segment ends after `segmentMs`, even if it is not full. */
  constructor(
    periodMs: number,
    segments: Segments,
    maxBytes: number,
    segmentMs = Number.POSITIVE_INFINITY,
  ) {
    this.periodMs = periodMs
    this.#segments = segments
    this.#segmentBytes = maxBytes / maxSegments
    this.#segmentMs = segmentMs
    const last = segments.starts.at(-1)
    if (last !== undefined) {
      this.read(last, Number.POSITIVE_INFINITY, {
        block: (_, endMs) => {
          this.advanceTo(endMs)
          return false
        },
        series: () => undefined,
        count: () => undefined,
      })
    }
  }

  /** Start of the oldest bucket; undefined if there is none. */
  get startMs(): number | undefined {
    return this.#segments.starts[0]
  }

  get endMs(): number | undefined {
    return this.#endMs
  }

  get bytes(): number {
    return this.#segments.starts.reduce((sum, start) => sum + this.#segments.bytesOf(start), 0)
  }

  get segments(): number {
    return this.#segments.starts.length
  }

  /** Removes the oldest segment, and returns the number of its bytes. */
  removeOldest(): number {
    const [oldest] = this.#segments.starts
    if (oldest === undefined) return 0
    const bytes = this.#segments.bytesOf(oldest)
    this.#segments.remove(oldest)
    return bytes
  }

  /** @throws the system's error, such as for a full disk. The bucket is then lost. */
  append({ startMs, endMs, groups }: Bucket): void {
    this.advanceTo(endMs)
    const segment = this.#segmentFor(startMs)
    const blocks = [...groups].map(([group, series]) =>
      this.#writer.write(startMs, endMs, group, limitSeries(series)),
    )
    if (blocks.length === 0) return
    try {
      this.#segments.append(segment, Buffer.concat(blocks))
    } catch (error) {
      // The list of names may be incomplete on disk.
      this.#writer.beginList()
      throw error
    }
  }

  /** Notes that there is nothing more to append before a time. */
  advanceTo(endMs: number): void {
    this.#endMs = Math.max(endMs, this.#endMs ?? 0)
  }

  #segmentFor(startMs: number): number {
    const { starts } = this.#segments
    // After the clock was set back, the newest segment is not the one of this time.
    const known = starts.findLast((start) => start <= startMs)
    const isFull =
      known !== undefined &&
      (this.#segments.bytesOf(known) >= this.#segmentBytes || startMs - known >= this.#segmentMs)
    const segment = known === undefined || (isFull && known !== startMs) ? startMs : known
    if (segment !== this.#current) {
      this.#writer.beginList()
      if (segment !== known) this.#dropOldest()
    }
    this.#current = segment
    return segment
  }

  #dropOldest(): void {
    const maxBytes = this.#segmentBytes * (maxSegments - 1)
    while (this.segments > 0 && (this.bytes > maxBytes || this.segments >= mostSegments)) {
      this.removeOldest()
    }
  }

  /** Reads the buckets that begin in a time, in order. */
  read(fromMs: number, toMs: number, visitor: BlockVisitor): void {
    const { starts } = this.#segments
    const within: BlockVisitor = {
      block: (startMs, endMs, group) =>
        startMs >= fromMs && startMs < toMs && visitor.block(startMs, endMs, group),
      series: (name) => visitor.series(name),
      count: (name, value) => visitor.count(name, value),
    }
    starts.forEach((start, at) => {
      const next = starts[at + 1]
      if (start >= toMs || (next !== undefined && next <= fromMs)) return
      const reader = new BlockReader()
      for (const frame of framesOf(this.#segments.read(start))) {
        if ('problem' in frame) reader.skipList()
        else reader.read(frame.block, within)
      }
    })
  }
}
