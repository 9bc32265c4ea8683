import { Arrivals } from './arrivals.ts'
import type { LogVersions } from './encode.ts'
import { beginning, LogError, type Position } from './log.ts'
import type { BatchFrame } from './nats-frames.ts'

/** The parts of a stored message that the index uses. */
export interface StoredFrame {
  readonly sequence: number
  readonly subject: string
  readonly frame: BatchFrame | undefined
}

/** A batch whose frames have not all arrived yet. */
interface OpenBatch {
  readonly batch: string
  readonly frames: StoredFrame[]
}

/** What an index knows after the messages up to a sequence. */
export interface NatsIndexState {
  readonly sequence: number
  readonly last: number
  readonly purgedUpTo: number
  readonly announcedUpTo: number
  /** Where sequences do not simply follow each other: a position, and the sequence of its event. */
  readonly runs: readonly (readonly [position: number, sequence: number])[]
  readonly subjects: readonly (readonly [subject: string, last: number])[]
  /** Digests of the ids, in order of the positions. */
  readonly digests: readonly string[]
}

/**
 * Decides which messages of a stream are events, and at which positions. It is a pure function of the
 * messages in their order, so that all readers and writers see the same log:
 *
 * - A batch counts once all its frames have arrived one directly after the other.
 * - Any other message ends an open batch. All frames of that batch are
 *   ignored, even later ones: its writer died, or another one was faster.
 * - A batch that was appended to another state of the log (`base`) is ignored as well.
 * - If sequences are missing, history was lost; the other events keep their positions. If no event is
 *   left that has a position, the base of the next purge sets it.
 */
export class StreamIndex implements LogVersions {
  readonly arrivals = new Arrivals()
  #sequence = 0
  #last: number = beginning
  #purgedUpTo = 0
  /** The position up to which events were removed according to purge frames. */
  #announcedUpTo = 0
  /** Whether the position before the next batch is unknown, since earlier events are gone. */
  #isAdrift = true
  #open: OpenBatch | undefined
  /** Sequence of the first frame of each event, by position from `#purgedUpTo + 1`. */
  #sequences: number[] = []
  /** Digest of each event's id, by position from `#purgedUpTo + 1`. */
  #digests: string[] = []
  #positions = new Map<string, number>()
  #lastOfSubject = new Map<string, number>()

  /** The last sequence that was applied. */
  get sequence(): number {
    return this.#sequence
  }

  get purgedUpTo(): number {
    return this.#purgedUpTo
  }

  /** Where the log begins and ends. */
  get extent(): { readonly purgedUpTo: number; readonly lastPosition: number } {
    return { purgedUpTo: this.#purgedUpTo, lastPosition: this.#last }
  }

  /** Position up to which events were removed externally; 0 if none were. */
  get lostUpTo(): number {
    return this.#purgedUpTo > this.#announcedUpTo ? this.#purgedUpTo : 0
  }

  /** Whether the next position is unknown, so that the next append has to define it. */
  get isAdrift(): boolean {
    return this.#isAdrift
  }

  /** The batch whose frames are still arriving. */
  get openBatch(): string | undefined {
    return this.#open?.batch
  }

  /** Sequence up to which it is decided which messages are events. */
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

  /** Sequence of the first frame of an event in the log. */
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

  /** Applies the next message; one that was applied before changes nothing. */
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

  /** Skips messages up to a sequence, since they were removed before they were applied. */
  loseUpTo(sequence: number): void {
    if (sequence <= this.#sequence) return
    this.#sequence = sequence
    this.#open = undefined
    this.#isAdrift = true
    this.arrivals.announce()
  }

  /** Removes the events before a sequence, since their messages are no longer in the stream. */
  forgetBefore(sequence: number): void {
    const firstRemaining = this.#sequences.findIndex((first) => first >= sequence)
    this.#purge(firstRemaining === -1 ? this.#last : this.#purgedUpTo + firstRemaining)
  }

  /** Sets the last position of a log whose stream is empty. */
  startAt(position: number): void {
    this.#last = position
    this.#purge(position)
    this.#announcedUpTo = position
    this.#isAdrift = false
  }

  /** Captures what is decided; undefined if positions are unknown. */
  toState(): NatsIndexState | undefined {
    if (this.#isAdrift) return undefined
    const runs = this.#sequences.flatMap((sequence, at) =>
      sequence === (this.#sequences[at - 1] ?? 0) + 1 && at > 0
        ? []
        : [[this.#purgedUpTo + at + 1, sequence] as const],
    )
    return {
      sequence: this.decidedUpTo,
      last: this.#last,
      purgedUpTo: this.#purgedUpTo,
      announcedUpTo: this.#announcedUpTo,
      runs,
      subjects: [...this.#lastOfSubject],
      digests: [...this.#digests],
    }
  }

  /** Restores a snapshot into an empty index. */
  restore({ runs, subjects, digests, ...state }: NatsIndexState): void {
    this.#sequence = state.sequence
    this.#last = state.last
    this.#purgedUpTo = state.purgedUpTo
    this.#announcedUpTo = state.announcedUpTo
    this.#isAdrift = false
    for (const [at, [position, sequence]] of runs.entries()) {
      const end = runs[at + 1]?.[0] ?? state.last + 1
      for (let next = position; next < end; next++) {
        this.#sequences.push(sequence + next - position)
      }
    }
    this.#digests = [...digests]
    for (const [at, digest] of digests.entries()) {
      this.#positions.set(digest, state.purgedUpTo + at + 1)
    }
    this.#lastOfSubject = new Map(subjects)
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

  /** Whether a frame continues the log. A purge after a loss may begin further up than the known end. */
  #follows({ base, purgedUpTo }: BatchFrame): boolean {
    return base === this.#last || (purgedUpTo !== undefined && base > this.#last)
  }

  #commit(frames: readonly StoredFrame[]): void {
    const base = frames[0]?.frame?.base ?? beginning
    if (this.#isAdrift || base > this.#last) this.#findBase(base)
    for (const { sequence, subject, frame } of frames) {
      if (frame?.purgedUpTo !== undefined) {
        this.#purge(frame.purgedUpTo)
        this.#announcedUpTo = Math.max(this.#announcedUpTo, frame.purgedUpTo)
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
        `the stream continues at position ${base} but was at ${this.#last} before, so it was replaced`,
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
