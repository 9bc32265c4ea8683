import { Arrivals } from './arrivals.ts'
import type { LogVersions } from './encode.ts'
import { beginning, LogError, type Position } from './log.ts'
import type { Frame } from './nats-frames.ts'

/** What the index needs of a stored message. */
export interface StoredFrame {
  readonly sequence: number
  readonly subject: string
  readonly frame: Frame | undefined
}

/** A batch of which not every frame has been seen yet. */
interface OpenBatch {
  readonly batch: string
  readonly frames: StoredFrame[]
}

/**
 * Decides which messages of a stream count, and at which positions. It is a pure function of the
 * messages in their order, so that every reader and every writer comes to the same log:
 *
 * - A batch counts once all its frames stand behind each other, nothing in between.
 * - Anything else that follows an open batch ends it: its frames are passed over for good, and so
 *   are those that come late. Its writer died, or was overtaken.
 * - A batch that was appended to another state of the log than the one that it meets (`base`) does
 *   not count either.
 * - Where sequences are missing, history was lost; what is left counts, at its own positions. Where
 *   nothing is left that says at which, the next purge does: its base counts, wherever it lies above.
 */
export class StreamIndex implements LogVersions {
  readonly arrivals = new Arrivals()
  #sequence = 0
  #last: number = beginning
  #purgedUpTo = 0
  /** Up to where purges of ours have told. */
  #toldUpTo = 0
  /** Is the position before the next batch unknown, since what stood before it is gone? */
  #isAdrift = true
  #open: OpenBatch | undefined
  /** By position, from `#purgedUpTo + 1`: the sequence of the first frame, and the id's digest. */
  #sequences: number[] = []
  #digests: string[] = []
  #positions = new Map<string, number>()
  #lastOfSubject = new Map<string, number>()

  /** The last sequence that was seen. */
  get sequence(): number {
    return this.#sequence
  }

  get purgedUpTo(): number {
    return this.#purgedUpTo
  }

  /** Up to this position events are gone that no purge of ours has told of; 0 where none are. */
  get lostUpTo(): number {
    return this.#purgedUpTo > this.#toldUpTo ? this.#purgedUpTo : 0
  }

  /** Is it unknown at which position the log goes on? What is appended next has to settle it. */
  get isAdrift(): boolean {
    return this.#isAdrift
  }

  /** The batch whose frames are still coming in. */
  get openBatch(): string | undefined {
    return this.#open?.batch
  }

  /** Up to this sequence every message counts or never will. */
  get decidedUpTo(): number {
    return (this.#open?.frames[0]?.sequence ?? this.#sequence + 1) - 1
  }

  lastPosition(): Position {
    return this.#last as Position
  }

  firstPosition(): Position {
    return (this.#purgedUpTo + 1) as Position
  }

  lastOfSubject(subject: string): Position {
    return (this.#lastOfSubject.get(subject) ?? beginning) as Position
  }

  positionOf(digest: string): Position | undefined {
    return this.#positions.get(digest) as Position | undefined
  }

  /** Sequence of the first frame of an event that is held. */
  sequenceOf(position: number): number | undefined {
    return this.#sequences[position - this.#purgedUpTo - 1]
  }

  /** Position of the event whose first frame has this sequence. */
  positionAt(sequence: number): number | undefined {
    let low = 0
    let high = this.#sequences.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#sequences[middle] ?? 0) < sequence) low = middle + 1
      else high = middle
    }
    return this.#sequences[low] === sequence ? low + this.#purgedUpTo + 1 : undefined
  }

  /** Takes the next message; one that was seen already changes nothing. */
  apply(stored: StoredFrame): void {
    if (stored.sequence <= this.#sequence) return
    if (stored.sequence > this.#sequence + 1) this.loseUpTo(stored.sequence - 1)
    this.#sequence = stored.sequence
    this.#extend(stored)
    const frames = this.#open?.frames
    if (frames !== undefined && frames.length === frames[0]?.frame?.count) {
      this.#open = undefined
      this.#commit(frames)
    }
    this.arrivals.announce()
  }

  /** Nothing up to a sequence is in the stream any more, and it was not seen. */
  loseUpTo(sequence: number): void {
    if (sequence <= this.#sequence) return
    this.#sequence = sequence
    this.#open = undefined
    this.#isAdrift = true
    this.arrivals.announce()
  }

  /** Nothing before a sequence is in the stream any more, whoever removed it. */
  forgetBefore(sequence: number): void {
    const held = this.#sequences.findIndex((first) => first >= sequence)
    this.#purge(held === -1 ? this.#last : this.#purgedUpTo + held)
  }

  /** Goes on from a position that is known from elsewhere, where the stream itself is empty. */
  startAt(position: number): void {
    this.#last = position
    this.#purge(position)
    this.#toldUpTo = position
    this.#isAdrift = false
  }

  #extend(stored: StoredFrame): void {
    const { frame } = stored
    const open = this.#open
    if (frame !== undefined && open?.batch === frame.batch) {
      if (frame.index === open.frames.length + 1) {
        open.frames.push(stored)
        return
      }
    }
    const opens = frame?.index === 1 && (this.#isAdrift || this.#follows(frame))
    this.#open = opens ? { batch: frame.batch, frames: [stored] } : undefined
  }

  /** A purge may go on further up: its writer did not know where a log that was robbed had ended. */
  #follows({ base, purgedUpTo }: Frame): boolean {
    return base === this.#last || (purgedUpTo !== undefined && base > this.#last)
  }

  #commit(frames: readonly StoredFrame[]): void {
    const base = frames[0]?.frame?.base ?? beginning
    if (this.#isAdrift || base > this.#last) this.#findBase(base)
    for (const { sequence, subject, frame } of frames) {
      if (frame?.purgedUpTo !== undefined) {
        this.#purge(frame.purgedUpTo)
        this.#toldUpTo = Math.max(this.#toldUpTo, frame.purgedUpTo)
      }
      if (frame?.event?.part !== 1) continue
      this.#last++
      this.#sequences.push(sequence)
      this.#digests.push(frame.event.digest)
      this.#positions.set(frame.event.digest, this.#last)
      this.#lastOfSubject.set(subject, this.#last)
    }
  }

  #findBase(base: number): void {
    if (base < this.#last) {
      throw new LogError(
        'corrupt',
        `the stream goes on at position ${base} and was at ${this.#last} before: it was replaced`,
      )
    }
    this.#last = base
    this.#purge(base)
    this.#isAdrift = false
  }

  #purge(position: number): void {
    const count = position - this.#purgedUpTo
    if (count <= 0) return
    this.#purgedUpTo = position
    this.#sequences.splice(0, count)
    for (const digest of this.#digests.splice(0, count)) this.#positions.delete(digest)
    for (const [subject, last] of this.#lastOfSubject) {
      if (last <= position) this.#lastOfSubject.delete(subject)
    }
  }
}
