/** Reads and folds a log in a Web Worker, and answers what views ask about its moments. */

import { provideBuilt } from '../../src/engines/core/built-files-browser.ts'
import { hexDigest } from '../../src/ground/base/digest.ts'
import { foldVersion } from '../../src/past/replay/index.ts'
import { bytesOf, chunksOf, linesOf, SilenceError } from '../log/lines.ts'
import { LoadedLog, type Moment } from '../log/loaded-log.ts'
import { ConsoleServer, noAnswer, ServerError } from '../source/server.ts'
import { models } from './models.ts'
import { type FromWorker, type LogState, noLog, type Opening, type ToWorker } from './protocol.ts'
import { listEarlier, openServed } from './served-log.ts'
import { Slice } from './slice.ts'

/** Number of events from which on folding is worth a state of its own. */
const longFold = 1_000
/** Number of events whose lines are fetched at a time, if they are not there. */
const fetchedEvents = 5_000
/** Milliseconds without a question about a moment until states are computed in order again. */
const quietMs = 120
/** Milliseconds between two reports of the progress. */
const reportMs = 100
/** Milliseconds after which a request that has no answer is called slow. */
const slowMs = 3_000
/** Milliseconds until the first and until every further attempt to reach the server again. */
/** How long a stream of the process may be silent; it sends an empty line every 5 seconds. */
const silentMs = 10_000
const retryMs = { first: 500, most: 15_000 }

const scope = globalThis as unknown as {
  onmessage(message: { readonly data: ToWorker }): void
  postMessage(message: FromWorker): void
}

class Engine {
  log = new LoadedLog('')
  #state: LogState = noLog
  #reportedAt = 0
  /** Changes with each opening; the reading of an earlier one ends. */
  #opened = 0
  /** Resolves when states of the log begin to be computed. */
  #begun = Promise.withResolvers<void>()
  #isBegun = false
  #askedAt = Number.NEGATIVE_INFINITY

  async open(opening: Opening): Promise<void> {
    const opened = ++this.#opened
    const server = opening.from === 'server' ? new ConsoleServer(opening.key) : undefined
    const name = opening.from === 'file' ? opening.name : 'this gateway'
    this.#begin(name, server)
    try {
      if (opening.from === 'file') await this.#readFile(opening.file, opened)
      else if (server !== undefined) await this.#follow(server, opened)
    } catch (error) {
      if (opened === this.#opened) this.#report({ state: 'failed', problem: messageOf(error) })
    } finally {
      // Views of a log that has no states show that it is empty.
      if (opened === this.#opened) this.#begun.resolve()
    }
  }

  #begin(name: string, server: ConsoleServer | undefined): void {
    const slice = new Slice()
    const fetch = server && ((positions: readonly number[]) => server.eventsAt(positions))
    const pause = () => (slice.isOver() ? slice.next() : undefined)
    this.log = new LoadedLog(name, { fetch, pause })
    this.#begun.resolve()
    this.#begun = Promise.withResolvers()
    this.#isBegun = false
    this.#report({ ...noLog, name, state: 'reading' })
  }

  /** The state after an event; without a position, the newest that is known or can be computed soon. */
  async momentAt(position: number | undefined): Promise<Moment> {
    await this.#begun.promise
    if (position !== undefined) this.#askedAt = performance.now()
    const { log } = this
    const { events } = log
    const last = events.positions.at(-1) ?? 0
    if (position === undefined && !log.isSoonKnown(events.length - 1)) return log.at()
    const wanted = position ?? last
    await log.reach(events.indexAt(wanted))
    return log.at(wanted)
  }

  async #readFile(file: Blob, opened: number): Promise<void> {
    const progress = (read: number) => this.#progress(file.size === 0 ? 1 : read / file.size)
    await this.#readAll(bytesOf(file, progress), opened)
    if (opened !== this.#opened) return
    const problem =
      this.log.events.length === 0
        ? 'The file has no event of a log. Write one with: sluice log -o json'
        : undefined
    this.#report({ state: problem === undefined ? 'ready' : 'failed', progress: 1, problem })
  }

  /** Reads what the server has, then what follows; tries again whenever the server is gone. */
  async #follow(server: ConsoleServer, opened: number): Promise<void> {
    let wait = retryMs.first
    while (opened === this.#opened) {
      try {
        const about = await this.#awaitAnswer(server.about(), opened)
        if (about.isExport) {
          const bytes = await (await server.get('export')).blob()
          return await this.#readFile(bytes, opened)
        }
        await this.#openServed(server, about.log, opened)
        // Earlier events may have been removed since.
        const next = Math.max(this.#next, about.log?.first ?? 1)
        const events = server.get(`events?from=${next}`)
        await this.#readBody(await this.#awaitAnswer(events, opened), opened)
        this.#report({ state: 'following', problem: undefined })
        wait = retryMs.first
        const tail = server.get(`tail?from=${this.#next}`)
        await this.#readBody(await this.#awaitAnswer(tail, opened), opened)
      } catch (error) {
        if (opened !== this.#opened) return
        const { text, isFinal } = connectionProblem(error)
        this.#report({ state: 'following', problem: text })
        if (isFinal) return
      }
      await new Promise((resolve) => setTimeout(resolve, wait))
      wait = Math.min(wait * 2, retryMs.most)
    }
  }

  /** Says so while an answer takes long. */
  async #awaitAnswer<Answer>(answer: Promise<Answer>, opened: number): Promise<Answer> {
    const before = this.#state.problem
    const slow = setTimeout(() => {
      if (opened === this.#opened) this.#report({ problem: slowAnswer })
    }, slowMs)
    try {
      return await answer
    } finally {
      clearTimeout(slow)
      const isSlow = opened === this.#opened && this.#state.problem === slowAnswer
      if (isSlow) this.#report({ problem: before })
    }
  }

  /** Begins a long log at its newest stored state, and lists earlier events meanwhile. */
  async #openServed(
    server: ConsoleServer,
    extent: { readonly first: number } | undefined,
    opened: number,
  ): Promise<void> {
    const { log } = this
    if (this.#isBegun || log.events.length > 0 || extent === undefined) return
    const newest = await openServed(log, server, extent.first)
    if (newest === undefined || opened !== this.#opened) return
    await this.#beginStates(() => log.begin(newest))
    this.#report({})
    const isOpen = () => opened === this.#opened
    listEarlier(log, server, { isOpen, onListed: () => this.#report({}) }).catch((error) => {
      if (isOpen()) this.#report({ problem: messageOf(error) })
    })
  }

  async #beginStates(begin: () => Promise<void>): Promise<void> {
    if (this.#isBegun) return
    this.#isBegun = true
    await begin()
    this.#begun.resolve()
  }

  /** Position after the last event that was read. */
  get #next(): number {
    return (this.log.events.positions.at(-1) ?? 0) + 1
  }

  async #readBody({ body }: Response, opened: number): Promise<void> {
    if (body !== null) await this.#readAll(chunksOf(body, silentMs), opened)
  }

  /** Lists all events first, so that the slider is ready, and then folds them. */
  async #readAll(bytes: AsyncIterable<Uint8Array>, opened: number): Promise<void> {
    try {
      await this.#list(bytes, opened)
    } finally {
      // What was listed before a broken line is shown as well.
      await this.#fold(opened)
    }
  }

  async #list(bytes: AsyncIterable<Uint8Array>, opened: number): Promise<void> {
    const slice = new Slice()
    for await (const lines of linesOf(bytes)) {
      for (const line of lines) {
        if (opened !== this.#opened) return
        this.log.events.add(line)
        if (slice.isOver()) await slice.next()
      }
      this.#progress(this.#state.progress)
      // What follows the log never ends.
      if (this.#state.state === 'following') await this.#fold(opened)
    }
  }

  async #fold(opened: number): Promise<void> {
    const { log } = this
    if (opened !== this.#opened || log.events.length === 0) return
    await this.#beginStates(() => log.begin())
    const isLong = log.events.length - log.folded > longFold
    if (isLong && this.#state.state === 'reading') this.#report({ state: 'folding', progress: 0 })
    const slice = new Slice()
    let fetchedTo = log.folded
    while (opened === this.#opened && log.folded < log.events.length) {
      if (log.folded >= fetchedTo) {
        fetchedTo = log.folded + fetchedEvents
        await log.events.loadRange(log.folded, fetchedTo - 1)
      }
      log.foldNext()
      if (!slice.isOver()) continue
      this.#progress(log.folded / log.events.length)
      await slice.next()
      // A moment that a view waits for comes first, and a reader who moves the slider is not delayed.
      await log.idle()
      if (this.#state.state === 'folding') await this.#quiet()
    }
    if (log.damage !== undefined) throw log.damage
    this.#report({})
  }

  async #quiet(): Promise<void> {
    const left = () => this.#askedAt + quietMs - performance.now()
    for (let wait = left(); wait > 0; wait = left()) {
      await new Promise((resolve) => setTimeout(resolve, wait))
    }
  }

  #progress(progress: number | undefined): void {
    if (performance.now() - this.#reportedAt < reportMs) this.#state = { ...this.#state, progress }
    else this.#report({ progress })
  }

  #report(change: Partial<LogState>): void {
    this.#reportedAt = performance.now()
    const { events, folded } = this.log
    const identity = change.identity ?? this.#state.identity
    this.#state = {
      ...this.#state,
      count: events.length,
      folded,
      foldedTo: events.positions[folded - 1] ?? 0,
      unlisted: events.unlisted,
      hasStates: this.log.isSoonKnown(events.length - 1),
      first: events.positions[0] ?? 0,
      last: events.positions.at(-1) ?? 0,
      firstMs: events.timesMs[0] || 0,
      lastMs: events.timesMs.at(-1) || 0,
      notices: this.#notices(),
      ...change,
      identity: identity || this.#identity(),
    }
    scope.postMessage({ type: 'log', log: this.#state })
  }

  #identity(): string {
    const { events } = this.log
    return events.has(0) ? hexDigest('sha256', events.text(0)).slice(0, 8) : ''
  }

  #notices(): string[] {
    const { events, foldVersions, notices, states } = this.log
    const { positions } = events
    const first = positions[0] ?? 1
    const missing = (positions.at(-1) ?? 0) - first + 1 - positions.length
    const others = [...foldVersions].filter((version) => version !== foldVersion)
    const writers = [...new Set(states.others.map((state) => state.foldVersion))]
    const isUsed = states.nearest(Number.POSITIVE_INFINITY) !== undefined
    return [
      ...notices,
      ...(missing > 0 ? [`The log lacks ${missing} events between others.`] : []),
      ...(writers.length > 0 && !isUsed && first === 1
        ? [
            `The stored states are of fold version ${writers.join(', ')}; this page has ${foldVersion} and computes all states from the first event.`,
          ]
        : []),
      ...(others.length > 0
        ? [
            `The log was written with fold version ${others.join(', ')}; this page has ${foldVersion}, so that states may differ from what was in force.`,
          ]
        : []),
    ]
  }
}

const slowAnswer = 'The process that serves this page answers slowly. Waiting for it…'

/** Why a server cannot be followed, and whether it is of no use to try again. */
function connectionProblem(error: unknown): { readonly text: string; readonly isFinal: boolean } {
  if (error instanceof ServerError && error.status === 401) {
    const text =
      'The process was started again. Open the console URL that it printed last, in any tab; this page follows then.'
    return { text, isFinal: true }
  }
  // A connection that breaks while a response is read is a TypeError in every browser.
  const isGone = error instanceof TypeError || error instanceof SilenceError
  const text = isGone ? noAnswer : messageOf(error)
  return { text: `${text} Trying again…`, isFinal: false }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

const engine = new Engine()

scope.onmessage = async ({ data }) => {
  if (data.type === 'open') {
    provideBuilt('core.wasm', data.core)
    await engine.open(data.opening)
    return
  }
  const { id, name, position, params } = data
  try {
    const model = models[name] as (moment: Moment, params: unknown) => unknown
    const value = await model(await engine.momentAt(position), params)
    scope.postMessage({ type: 'answer', id, value })
  } catch (error) {
    scope.postMessage({ type: 'failure', id, message: messageOf(error) })
  }
}
