/** Reads and folds a log in a Web Worker, and answers what views ask about its moments. */

import { hexDigest } from '../../src/base/digest.ts'
import { provideBuilt } from '../../src/core/built-files-browser.ts'
import { foldVersion } from '../../src/replay/index.ts'
import { bytesOf, chunksOf, linesOf } from '../log/lines.ts'
import { LoadedLog, type Moment } from '../log/loaded-log.ts'
import { ConsoleServer, noAnswer, ServerError } from '../source/server.ts'
import { models } from './models.ts'
import { type FromWorker, type LogState, noLog, type Opening, type ToWorker } from './protocol.ts'

/** Milliseconds of work after which waiting messages are handled. */
const sliceMs = 24
const stepsPerLook = 16
/** Number of events from which on folding is worth a state of its own. */
const longFold = 1_000
/** Milliseconds between two reports of the progress. */
const reportMs = 100
/** Milliseconds until the first and until every further attempt to reach the server again. */
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

  async open(opening: Opening): Promise<void> {
    const opened = ++this.#opened
    const name = opening.from === 'file' ? opening.name : 'this gateway'
    this.log = new LoadedLog(name)
    this.#report({ ...noLog, name, state: 'reading' })
    try {
      if (opening.from === 'file') await this.#readFile(opening.file, opened)
      else await this.#follow(new ConsoleServer(opening.key), opened)
    } catch (error) {
      if (opened === this.#opened) this.#report({ state: 'failed', problem: messageOf(error) })
    }
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
        const { isExport, log } = await server.about()
        if (isExport) {
          const bytes = await (await server.get('export')).blob()
          return await this.#readFile(bytes, opened)
        }
        // Earlier events may have been removed since.
        const next = Math.max(this.#next, log?.first ?? 1)
        await this.#readBody(await server.get(`events?from=${next}`), opened)
        this.#report({ state: 'following', problem: undefined })
        wait = retryMs.first
        await this.#readBody(await server.get(`tail?from=${this.#next}`), opened)
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

  /** Position after the last event that was read. */
  get #next(): number {
    return (this.log.events.positions.at(-1) ?? 0) + 1
  }

  async #readBody({ body }: Response, opened: number): Promise<void> {
    if (body !== null) await this.#readAll(chunksOf(body), opened)
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
    const isLong = log.events.length - log.folded > longFold
    if (isLong && this.#state.state === 'reading') this.#report({ state: 'folding', progress: 0 })
    const slice = new Slice()
    while (opened === this.#opened && log.folded < log.events.length) {
      log.foldNext()
      if (!slice.isOver()) continue
      this.#progress(log.folded / log.events.length)
      await slice.next()
    }
    this.#report({})
  }

  #progress(progress: number | undefined): void {
    if (performance.now() - this.#reportedAt < reportMs) this.#state = { ...this.#state, progress }
    else this.#report({ progress })
  }

  #report(change: Partial<LogState>): void {
    this.#reportedAt = performance.now()
    const { events } = this.log
    this.#state = {
      ...this.#state,
      count: events.length,
      folded: this.log.folded,
      foldedTo: events.positions[this.log.folded - 1] ?? 0,
      first: events.positions[0] ?? 0,
      last: events.positions.at(-1) ?? 0,
      firstMs: events.timesMs[0] ?? 0,
      lastMs: events.timesMs.at(-1) ?? 0,
      identity: events.length === 0 ? '' : hexDigest('sha256', events.text(0)).slice(0, 8),
      notices: this.#notices(),
      ...change,
    }
    scope.postMessage({ type: 'log', log: this.#state })
  }

  #notices(): string[] {
    const { positions } = this.log.events
    const first = positions[0] ?? 1
    const last = positions.at(-1) ?? 0
    const missing = last - first + 1 - positions.length
    const others = [...this.log.foldVersions].filter((version) => version !== foldVersion)
    return [
      ...(first > 1
        ? [`The log begins at position ${first}: objects that have not changed since are missing.`]
        : []),
      ...(missing > 0 ? [`The log lacks ${missing} events between others.`] : []),
      ...(others.length > 0
        ? [
            `The log was written with fold version ${others.join(', ')}; this page has ${foldVersion}, so that states may differ from what was in force.`,
          ]
        : []),
    ]
  }
}

/** Why a server cannot be followed, and whether it is of no use to try again. */
function connectionProblem(error: unknown): { readonly text: string; readonly isFinal: boolean } {
  if (error instanceof ServerError && error.status === 401) {
    const text =
      'The process was started again. Open the console URL that it printed last, in any tab; this page follows then.'
    return { text, isFinal: true }
  }
  // A connection that breaks while a response is read is a TypeError in every browser.
  const text = error instanceof TypeError ? noAnswer : messageOf(error)
  return { text: `${text} Trying again…`, isFinal: false }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

const turns = new MessageChannel()
let resume: () => void = () => undefined
turns.port1.onmessage = () => resume()

/** Resolves after the messages that wait; a timer would wait for 4 ms. */
const nextTask = () =>
  new Promise<void>((resolve) => {
    resume = resolve
    turns.port2.postMessage(undefined)
  })

/** A part of long work, after which waiting messages are handled. */
class Slice {
  #steps = 0
  #begun = performance.now()

  /** The clock is not read at each step. */
  isOver(): boolean {
    return ++this.#steps % stepsPerLook === 0 && performance.now() - this.#begun > sliceMs
  }

  async next(): Promise<void> {
    await nextTask()
    this.#begun = performance.now()
  }
}

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
    const value = await model(engine.log.at(position), params)
    scope.postMessage({ type: 'answer', id, value })
  } catch (error) {
    scope.postMessage({ type: 'failure', id, message: messageOf(error) })
  }
}
