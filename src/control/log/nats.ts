import type { AnyCloudEvent } from '../../../events/index.ts'
import { encodeEvents } from './encode.ts'
import {
  type Appended,
  type EventLog,
  type ExpectedVersion,
  LogError,
  type NewSnapshot,
  type Position,
  type ReadRange,
  type Recorded,
  type SnapshotInfo,
  type SnapshotQuery,
} from './log.ts'
import {
  type Deadline,
  type Link,
  lastPresent,
  type NatsLogOptions,
  openLink,
  persist,
  StreamExtent,
  subjectFrom,
} from './nats-connection.ts'
import { cutBatch, type OutgoingFrame, parseFrame, purgeFrame } from './nats-frames.ts'
import { type StoredFrame, StreamIndex } from './nats-index.ts'
import { IndexStore } from './nats-index-store.ts'
import { followMessages, readEvents } from './nats-reader.ts'
import { SnapshotStore } from './nats-snapshots.ts'
import { type AppendRequest, planAppends, publishBatch } from './nats-writer.ts'
import { parseSubject } from './subjects.ts'

export { withoutPasswords } from './nats-connection.ts'

interface PendingAppend extends AppendRequest {
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: unknown) => void
}

/**
 * Opens the log in a JetStream stream, which any number of processes may use at a time, and reads the headers
 * of all events after the stored index. docs/adr/0003-log-on-jetstream.md describes the design.
 * @throws LogError `unsupported`, `foreign` or `storage`
 */
export async function openNatsLog(options: NatsLogOptions): Promise<EventLog> {
  const { patienceMs = 30_000, graceMs = 500, connect = openLink } = options
  const link = await connect(options)
  const log = new NatsLog(link, patienceMs, graceMs)
  try {
    await log.start()
    return log
  } catch (error) {
    await log.close()
    throw error
  }
}

class NatsLog implements EventLog {
  readonly #link: Link
  readonly #patienceMs: number
  readonly #graceMs: number
  #index = new StreamIndex()
  #snapshots: SnapshotStore
  #extent: StreamExtent
  #stored: IndexStore
  #pending: PendingAppend[] = []
  /** Ends with the last append or purge; these run one after the other. */
  #work: Promise<void> = Promise.resolve()
  #following: Promise<void> = Promise.resolve()
  /** Aborted when the log is closed or has failed permanently. */
  #over = new AbortController()
  #failure: LogError | undefined
  #closed = false
  #closing: Promise<void> | undefined

  constructor(link: Link, patienceMs: number, graceMs: number) {
    this.#link = link
    this.#patienceMs = patienceMs
    this.#graceMs = graceMs
    this.#snapshots = new SnapshotStore(link)
    this.#extent = new StreamExtent(link)
    this.#stored = new IndexStore(link)
  }

  async start(): Promise<void> {
    const info = await this.#streamInfo(this.#deadline())
    await this.#stored.restore(this.#index, info)
    // Only a new stream has a known position: that of one which was emptied externally is unknown.
    if (info.state.last_seq === 0) this.#index.startAt((await this.#snapshots.position()) ?? 0)
    this.#following = this.#follow()
    await this.#catchUp(this.#deadline())
  }

  async append(
    events: readonly AnyCloudEvent[],
    { expectedVersion }: { readonly expectedVersion?: ExpectedVersion } = {},
  ): Promise<Appended> {
    this.#assertOpen()
    const encoded = encodeEvents(events)
    if (!encoded.ok) return encoded
    const foreign = events.find(({ subject }) => parseSubject(subject) === undefined)
    if (foreign !== undefined) throw new TypeError(`${foreign.subject} is no subject of a resource`)
    return new Promise((resolve, reject) => {
      this.#pending.push({ events: encoded.value, expectedVersion, resolve, reject })
      // One batch serves all appends that wait when it is written.
      if (this.#pending.length === 1) this.#enqueue(() => this.#flushPending())
    })
  }

  async *read(range: ReadRange = {}): AsyncGenerator<Recorded> {
    const last = await this.lastPosition()
    const from = Math.max(range.from ?? this.#index.firstPosition(), 1)
    const { subject, to: limit = last } = range
    const to = Math.min(limit, subject === undefined ? last : this.#index.lastOfSubject(subject))
    if (from > to) return
    const own = new AbortController()
    const signal = AbortSignal.any([this.#over.signal, own.signal])
    try {
      for await (const recorded of readEvents(this.#link, this.#index, from, signal, subject)) {
        if (recorded.position > to) return
        yield recorded
        if (recorded.position === to) return
      }
      // Reading ended before the last event: the log was closed or has failed.
      this.#assertOpen()
    } finally {
      own.abort()
    }
  }

  async *tail(
    from: Position,
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<Recorded> {
    this.#assertOpen()
    const own = options.signal === undefined ? [] : [options.signal]
    const signal = AbortSignal.any([this.#over.signal, ...own])
    yield* readEvents(this.#link, this.#index, Math.max(from, 1), signal)
    if (this.#failure !== undefined && options.signal?.aborted !== true) throw this.#failure
  }

  async lastPosition(): Promise<Position> {
    return (await this.#refresh()).lastPosition()
  }

  async firstPosition(): Promise<Position> {
    return (await this.#refresh()).firstPosition()
  }

  async lostUpTo(): Promise<number> {
    const { isAdrift, sequence, lostUpTo } = await this.#refresh()
    return isAdrift && sequence > 0 ? Number.POSITIVE_INFINITY : lostUpTo
  }

  async mend(stateAt: (last: Position) => NewSnapshot): Promise<void> {
    this.#assertOpen()
    await this.#enqueue(async () => {
      const deadline = this.#deadline()
      await this.#catchUp(deadline)
      await this.#settle(deadline)
      const snapshot = stateAt(this.#index.lastPosition())
      await this.#snapshots.save(snapshot, this.#index.extent)
      await this.#purge(Math.min(snapshot.position, this.#index.purgedUpTo) as Position)
    })
  }

  async saveSnapshot(snapshot: NewSnapshot): Promise<void> {
    const { position } = snapshot
    if (position > (await this.lastPosition())) {
      throw new LogError('no-snapshot', `position ${position} has not been reached`)
    }
    if (position < this.#index.purgedUpTo) {
      throw new LogError('no-snapshot', `a newer snapshot than ${position} is needed by now`)
    }
    await this.#snapshots.save(snapshot, this.#index.extent)
    this.#stored.save(this.#index)
  }

  async loadSnapshot(query?: SnapshotQuery) {
    this.#assertOpen()
    return this.#snapshots.load(query)
  }

  async snapshots(): Promise<readonly SnapshotInfo[]> {
    this.#assertOpen()
    return this.#snapshots.list()
  }

  async purgeUpTo(position: Position): Promise<void> {
    this.#assertOpen()
    if (position > ((await this.#snapshots.position()) ?? 0)) {
      throw new LogError('no-snapshot', `no stored snapshot covers position ${position}`)
    }
    await this.#enqueue(() => this.#purge(position))
    await this.#snapshots.purgeUpTo(position)
  }

  compact(): Promise<void> {
    return this.#snapshots.compact()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#closed = true
    await this.#work
    await this.#stored.settled()
    this.#over.abort()
    const { connection } = this.#link
    if (this.#link.isConnected()) await connection.drain().catch(() => undefined)
    await connection.close()
    await this.#following
  }

  /** Runs `work` after all earlier work, even if that fails. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work)
    this.#work = done.catch(() => undefined)
    return done
  }

  /** Appends all waiting events as one batch, in the order of the calls. */
  async #flushPending(): Promise<void> {
    const pending = this.#pending
    this.#pending = []
    try {
      const results = await this.#appendAll(pending)
      for (const [index, { resolve }] of pending.entries()) resolve(results[index] as Appended)
    } catch (error) {
      for (const { reject } of pending) reject(error)
    }
  }

  async #appendAll(requests: readonly AppendRequest[]): Promise<readonly Appended[]> {
    const deadline = this.#deadline()
    for (let isCurrent = false; ; ) {
      await this.#awaitOthers(deadline)
      if (this.#index.isAdrift) await this.#settle(deadline)
      const { results, events } = planAppends(requests, this.#index)
      if (!isCurrent && results.some(({ ok }) => !ok)) {
        // An append may be refused only because of the newest state.
        await this.#catchUp(deadline)
        isCurrent = true
        continue
      }
      if (events.length === 0) return results
      const frames = cutBatch(events, this.#index.lastPosition(), this.#link.maxFrameBytes)
      if ((await this.#publish(frames, deadline)) !== undefined) return results
      await this.#catchUp(deadline)
      isCurrent = true
    }
  }

  /** Publishes frames as the next messages. Returns undefined if another writer was faster. */
  async #publish(
    frames: readonly OutgoingFrame[],
    deadline: Deadline,
  ): Promise<readonly StoredFrame[] | undefined> {
    const stored = await publishBatch(this.#link, frames, this.#index.sequence, deadline)
    for (const frame of stored ?? []) this.#index.apply(frame)
    return stored
  }

  /**
   * Sets the next position of a log whose last events were removed. It is above every position that the log
   * can have had, since each event takes a message and a log begins at 0 or at a stored snapshot.
   */
  async #settle(deadline: Deadline): Promise<void> {
    while (this.#index.isAdrift) {
      const stored = (await this.#snapshots.position()) ?? 0
      const base = Math.max(this.#index.lastPosition(), stored + this.#index.sequence)
      await this.#publish([purgeFrame(base, 0)], deadline)
      await this.#catchUp(deadline)
    }
  }

  /** Gives another writer time to finish its batch. */
  async #awaitOthers(deadline: Deadline): Promise<void> {
    const index = this.#index
    while (index.openBatch !== undefined) {
      const { sequence } = index
      await this.#waitFor(
        () => index.openBatch === undefined || index.sequence > sequence,
        Math.min(deadline, performance.now() + this.#graceMs),
      )
      if (index.sequence === sequence) return
    }
  }

  /** Removes events: first informs every reader, then lets the server remove whole batches. */
  async #purge(position: Position): Promise<void> {
    const deadline = this.#deadline()
    const index = this.#index
    for (;;) {
      await this.#catchUp(deadline)
      // External removals are announced too, so that every reader knows that a snapshot covers them.
      const isUnannounced = index.lostUpTo > 0 && position >= index.lostUpTo
      if (position <= index.purgedUpTo && !isUnannounced) return
      await this.#awaitOthers(deadline)
      const notice = purgeFrame(index.lastPosition(), position)
      const [stored] = (await this.#publish([notice], deadline)) ?? []
      if (stored === undefined) continue
      // The purge frame itself stays, so that the stream always has the last position.
      const next = index.sequenceOf(position + 1) ?? Number.POSITIVE_INFINITY
      const keep = next < stored.sequence ? await this.#batchStart(next, deadline) : stored.sequence
      const { manager, stream } = this.#link
      // The server would remove everything if the sequence were 1.
      if (keep > 1) await persist(() => manager.streams.purge(stream.name, { seq: keep }), deadline)
      return
    }
  }

  /** Sequence of the first frame of the batch that a frame belongs to. */
  async #batchStart(sequence: number, deadline: Deadline): Promise<number> {
    const { manager, stream } = this.#link
    const get = () => manager.streams.getMessage(stream.name, { seq: sequence })
    const message = await persist(get, deadline)
    return sequence - ((parseFrame(message?.header)?.index ?? 1) - 1)
  }

  /** Applies all messages to the index as they arrive. */
  async #follow(): Promise<void> {
    const range = { from: this.#index.sequence + 1, headersOnly: true, signal: this.#over.signal }
    try {
      for await (const { seq, subject, headers } of followMessages(this.#link, range)) {
        const own = subjectFrom(this.#link.stream, subject)
        this.#index.apply({ sequence: seq, subject: own, frame: parseFrame(headers) })
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#failure ??=
      error instanceof LogError ? error : new LogError('storage', String(error), { cause: error })
    this.#over.abort()
  }

  async #refresh(): Promise<StreamIndex> {
    this.#assertOpen()
    await this.#catchUp(this.#deadline())
    this.#assertOpen()
    return this.#index
  }

  /** Waits until the index has applied all messages that the stream has now. */
  async #catchUp(deadline: Deadline): Promise<void> {
    // Read before the request, since messages may be applied during it.
    const applied = this.#index.sequence
    const { state } = await this.#streamInfo(deadline)
    if (state.last_seq < applied) {
      this.#fail(new LogError('corrupt', 'the stream was replaced by another one; open it again'))
    }
    // Messages that were removed before they were applied will not arrive.
    this.#index.loseUpTo(state.first_seq - 1)
    this.#index.forgetBefore(state.first_seq)
    const holes = await this.#extent.holes(state, deadline)
    await this.#reach(lastPresent(state.last_seq, holes), deadline)
    this.#index.loseUpTo(state.last_seq)
    for (const hole of holes.slice(-1)) this.#index.forgetBefore(hole + 1)
  }

  async #reach(sequence: number, deadline: Deadline): Promise<void> {
    await this.#waitFor(() => this.#index.sequence >= sequence, deadline)
    if (this.#failure !== undefined) throw this.#failure
    if (this.#index.sequence < sequence) {
      throw new LogError('storage', 'the NATS server does not deliver the events that it holds')
    }
  }

  /** Returns the state of the stream. If the stream was deleted or replaced, this log fails. */
  async #streamInfo(deadline: Deadline) {
    try {
      return await this.#extent.info(deadline)
    } catch (error) {
      if (error instanceof LogError && error.code === 'corrupt') this.#fail(error)
      throw error
    }
  }

  /** Resolves when `holds` returns true, the deadline has passed, or the log was closed or has failed. */
  async #waitFor(holds: () => boolean, deadline: Deadline): Promise<void> {
    const left = Math.max(0, Math.ceil(deadline - performance.now()))
    const signal = AbortSignal.any([this.#over.signal, AbortSignal.timeout(left)])
    while (!holds() && !signal.aborted) await this.#index.arrivals.next(signal)
  }

  #deadline(): Deadline {
    return performance.now() + this.#patienceMs
  }

  #assertOpen(): void {
    if (this.#closed) throw new LogError('closed', 'the log is closed')
    if (this.#failure !== undefined) throw this.#failure
  }
}
