/** The page's side of the worker: the state of the log, and hooks for what views show. */
import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import {
  type Answer,
  type FromWorker,
  type ModelName,
  noLog,
  type Opening,
  type Params,
  type ToWorker,
} from '../worker/protocol.ts'
import { position } from './location.ts'

export const log = signal(noLog)
/** Why the worker itself failed. */
export const failure = signal<string | undefined>(undefined)

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

const waiting = new Map<number, Waiting>()
let lastId = 0
let started: Worker | undefined

function worker(): Worker {
  if (started !== undefined) return started
  started = new Worker('fold-worker.js', { type: 'module', name: 'fold' })
  started.onmessage = ({ data }: MessageEvent<FromWorker>) => {
    if (data.type === 'log') {
      log.value = data.log
      return
    }
    const job = waiting.get(data.id)
    waiting.delete(data.id)
    if (data.type === 'answer') job?.resolve(data.value)
    else job?.reject(new Error(data.message))
  }
  started.onerror = ({ message }) => {
    failure.value = `The worker that folds the log failed: ${message}. Reload the page.`
  }
  return started
}

const send = (message: ToWorker) => worker().postMessage(message)

/** Starts to read a log in place of the present one. */
export async function open(opening: Opening): Promise<void> {
  const response = await fetch('core.wasm')
  if (!response.ok) {
    failure.value = `core.wasm could not be loaded: ${response.status}.`
    return
  }
  send({ type: 'open', opening, core: new Uint8Array(await response.arrayBuffer()) })
}

/** Asks once, about the newest moment unless `at` is the position of another. */
export function ask<Name extends ModelName>(
  name: Name,
  params: Params<Name>,
  at?: number,
): Promise<Answer<Name>> {
  const id = ++lastId
  const answer = new Promise<unknown>((resolve, reject) => waiting.set(id, { resolve, reject }))
  send({ type: 'query', id, name, position: at, params })
  return answer as Promise<Answer<Name>>
}

export interface Shown<Value> {
  /** The last answer, also while a newer one is awaited; undefined before the first. */
  readonly value: Value | undefined
  readonly error: string | undefined
  readonly isBusy: boolean
}

/**
 * What a view shows: the answer for the present parameters and moment. One request is under way at a time;
 * of those that come meanwhile only the last is sent.
 */
export const useModel = <Name extends ModelName>(name: Name, params: Params<Name>) =>
  useModelAt(name, params, position.value)

/** Like `useModel`, for what is the same at every moment and only grows with the log. */
export const useLogModel = <Name extends ModelName>(name: Name, params: Params<Name>) =>
  useModelAt(name, params, undefined)

function useModelAt<Name extends ModelName>(
  name: Name,
  params: Params<Name>,
  at: number | undefined,
): Shown<Answer<Name>> {
  const [given, setGiven] = useState<Given<Answer<Name>>>(nothingGiven)
  const [job] = useState(() => new LatestJob<Answer<Name>>(setGiven))
  const { count, folded, foldedTo, identity, state, unlisted, hasStates, last } = log.value
  // The newest moment changes with every event; in a long log it is shown now and then, until all are folded.
  const newest = state === 'folding' ? `${state} ${Math.clz32(folded)}` : folded
  const isPast = at !== undefined && (at <= foldedTo || (hasStates && at < last))
  const isComputed = isPast || at === undefined || folded === count
  // Causes of earlier changes may become known later.
  const version = isPast ? (at <= foldedTo ? 0 : -1) : newest
  const wanted = JSON.stringify([name, params, at, version, unlisted, identity])
  useEffect(() => {
    if (isComputed) job.want(wanted, () => ask(name, params, at))
  })
  useEffect(() => () => job.close(), [job])
  const { value, error, key } = given
  return { value, error, isBusy: key !== wanted }
}

export const nothingShown = { value: undefined, error: undefined, isBusy: true }

/** The last answer, and the key of the request. */
interface Given<Value> extends Pick<Shown<Value>, 'value' | 'error'> {
  readonly key: string
}

const nothingGiven = { value: undefined, error: undefined, key: '' }

/** Runs one request at a time, and afterwards the newest of those that came meanwhile. */
class LatestJob<Value> {
  readonly #show: (given: (before: Given<Value>) => Given<Value>) => void
  #run: () => Promise<Value> = () => new Promise(() => undefined)
  #wanted = ''
  #isRunning = false
  #isClosed = false

  constructor(show: (given: (before: Given<Value>) => Given<Value>) => void) {
    this.#show = show
  }

  /** Requests of the same key are sent once. */
  want(key: string, run: () => Promise<Value>): void {
    this.#isClosed = false
    if (key === this.#wanted) return
    this.#wanted = key
    this.#run = run
    if (!this.#isRunning) this.#work()
  }

  close(): void {
    this.#isClosed = true
  }

  async #work(): Promise<void> {
    this.#isRunning = true
    for (let done = ''; done !== this.#wanted && !this.#isClosed; ) {
      const key = this.#wanted
      done = key
      const given = await this.#run().then(
        (value) => () => ({ value, error: undefined, key }),
        ({ message }: Error) =>
          ({ value }: Given<Value>) => ({ value, error: message, key }),
      )
      if (!this.#isClosed) this.#show(given)
    }
    this.#isRunning = false
  }
}
