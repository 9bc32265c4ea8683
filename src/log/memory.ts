import type { AnyCloudEvent } from '../../events/index.ts'
import { fail, type Outcome, succeed } from '../base/outcome.ts'
import { Arrivals } from './arrivals.ts'
import { decodeEvent, type EncodedEvent, encodeEvents, findConflict } from './encode.ts'
import {
  type AppendProblem,
  beginning,
  type EventLog,
  type ExpectedVersion,
  LogError,
  type Position,
  type ReadRange,
  type Recorded,
  type Snapshot,
} from './log.ts'

/**
 * A log that lives as long as the process: for tests and for `validate`. Events are kept as JSON,
 * so that nobody can change what was appended and nothing is kept that JSON would lose.
 */
export class MemoryLog implements EventLog {
  #events: EncodedEvent[] = []
  /** Number of events that were purged: index 0 of the array has position `#purged + 1`. */
  #purged = 0
  #positions = new Map<string, Position>()
  #lastOfSubject = new Map<string, Position>()
  #snapshot: Snapshot | undefined
  #arrivals = new Arrivals()
  #closed = false

  async append(
    events: readonly AnyCloudEvent[],
    options: { readonly expectedVersion?: ExpectedVersion } = {},
  ): Promise<Outcome<readonly Position[], AppendProblem>> {
    this.#assertOpen()
    const encoded = encodeEvents(events)
    if (!encoded.ok) return encoded
    const { expectedVersion } = options
    if (expectedVersion !== undefined && events.some(({ id }) => !this.#positions.has(id))) {
      const conflict = findConflict(expectedVersion, {
        purgedUpTo: this.#purged,
        lastPosition: () => this.#last(),
        lastOfSubject: (subject) => this.#lastOfSubject.get(subject) ?? beginning,
      })
      if (conflict !== undefined) return fail(conflict)
    }
    const positions = encoded.value.map((event) => this.#store(event))
    this.#arrivals.announce()
    return succeed(positions)
  }

  async *read(range: ReadRange = {}): AsyncGenerator<Recorded> {
    this.#assertOpen()
    const from = range.from ?? this.#first()
    const to = Math.min(range.to ?? this.#last(), this.#last())
    for (let position: number = Math.max(from, 1); position <= to; position++) {
      yield this.#at(position)
    }
  }

  async *readSubject(subject: string, range: ReadRange = {}): AsyncGenerator<Recorded> {
    const from = Math.max(range.from ?? beginning, this.#first()) as Position
    for await (const recorded of this.read({ ...range, from })) {
      if (recorded.event.subject === subject) yield recorded
    }
  }

  async *tail(
    from: Position,
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<Recorded> {
    this.#assertOpen()
    for (let position: number = Math.max(from, 1); ; ) {
      while (position > this.#last() && !this.#closed && !options.signal?.aborted) {
        await this.#arrivals.next(options.signal)
      }
      if (this.#closed || options.signal?.aborted) return
      yield this.#at(position++)
    }
  }

  async lastPosition(): Promise<Position> {
    this.#assertOpen()
    return this.#last()
  }

  async firstPosition(): Promise<Position> {
    this.#assertOpen()
    return this.#first()
  }

  /** Nobody else gets at it. */
  async lostUpTo(): Promise<number> {
    return 0
  }

  async mend(stateAt: (last: Position) => Snapshot): Promise<void> {
    await this.saveSnapshot(stateAt(this.#last()))
  }

  async saveSnapshot(snapshot: Snapshot): Promise<void> {
    this.#assertOpen()
    if (snapshot.position > this.#last()) {
      throw new LogError('no-snapshot', `position ${snapshot.position} has not been reached`)
    }
    this.#snapshot = { ...snapshot, chunks: snapshot.chunks.map((chunk) => Uint8Array.from(chunk)) }
  }

  async loadSnapshot(): Promise<Snapshot | undefined> {
    this.#assertOpen()
    return this.#snapshot
  }

  async purgeUpTo(position: Position): Promise<void> {
    this.#assertOpen()
    if (position > (this.#snapshot?.position ?? beginning)) {
      throw new LogError('no-snapshot', `no stored snapshot covers position ${position}`)
    }
    for (const { id } of this.#events.splice(0, Math.max(0, position - this.#purged))) {
      this.#positions.delete(id)
    }
    this.#purged = Math.max(this.#purged, position)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#arrivals.announce()
  }

  #store(event: EncodedEvent): Position {
    const known = this.#positions.get(event.id)
    if (known !== undefined) return known
    this.#events.push(event)
    const position = this.#last()
    this.#positions.set(event.id, position)
    this.#lastOfSubject.set(event.subject, position)
    return position
  }

  #at(position: number): Recorded {
    this.#assertOpen()
    const event = this.#events[position - this.#purged - 1]
    if (event === undefined) throw new LogError('purged', `position ${position} was purged`)
    return decodeEvent(position, event.body)
  }

  #last(): Position {
    return (this.#purged + this.#events.length) as Position
  }

  #first(): Position {
    return (this.#purged + 1) as Position
  }

  #assertOpen(): void {
    if (this.#closed) throw new LogError('closed', 'the log is closed')
  }
}
