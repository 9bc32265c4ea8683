/**
 * Shares the streams of the older transport between threads. A session has one stream, in the
 * thread that opened it. Other threads POST their messages; that thread passes on the responses.
 */
import { BroadcastChannel } from 'node:worker_threads'
import type { EventFields } from '../../event-stream.ts'
import { readMessage } from '../../message.ts'
import { TargetFailure } from '../target/refusals.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import { newSessionId } from './session-state.ts'
import type { PendingResponse, SseStream } from './sse-stream.ts'
import { isRunning, threadEnd } from './threads.ts'

/** What the thread of a stream sends to another one. */
type StreamReply =
  | { readonly kind: 'found'; readonly messagePath: string; readonly label: string | undefined }
  | { readonly kind: 'lost' | 'taken' | 'end' }
  | { readonly kind: 'message'; readonly text: string; readonly fields: EventFields | undefined }
  | { readonly kind: 'failure'; readonly text: string }

/** A message to the thread of a stream. `by` names the question, and later the listener. */
type StreamQuestion =
  /** `client` is the id of the client's session. */
  | { readonly find: string; readonly client: string; readonly by: string }
  | {
      readonly expect: string
      readonly by: string
      readonly id: string
      readonly progressToken: string | undefined
    }
  | { readonly listen: string; readonly by: string }
  | { readonly paused: string; readonly isPaused: boolean }

/** A message between threads. */
type ShareMessage =
  | StreamQuestion
  /** The listener is needed no more. */
  | { readonly dropped: string }
  | { readonly by: string; readonly reply: StreamReply }

/** A question or listener of this thread at a stream of another one. */
interface RemoteListener {
  readonly thread: string
  onReply(reply: StreamReply): void
  /** Called if the listener is removed. */
  onDetach?(): void
}

/** Maximum time for the thread of a stream to respond, which may be busy. */
const replyMs = 5_000

const lost = (): TargetFailure => new TargetFailure('the server has ended the session')

const threadOf = (id: string): string => id.split(' ')[0] ?? ''

export class SharedStreams {
  readonly #nameThread: () => Promise<string>
  readonly #onUse: (client: string) => void
  /** Streams of this thread. */
  readonly #own = new Map<string, SseStream>()
  /** Functions that remove listeners of other threads. */
  readonly #drops = new Map<string, () => void>()
  readonly #remote = new Map<string, RemoteListener>()
  readonly #watchedThreads = new Set<string>()
  #channel: BroadcastChannel | undefined
  #name = ''

  /** `nameThread` resolves to the name of this thread. `onUse` is called if another thread uses a session. */
  constructor(nameThread: () => Promise<string>, onUse: (client: string) => void) {
    this.#nameThread = nameThread
    this.#onUse = onUse
  }

  /** Adds a stream of this thread. Resolves to its id, which names the thread. */
  async add(stream: SseStream): Promise<string> {
    this.#name = await this.#nameThread()
    this.#others()
    const id = `${this.#name} ${newSessionId()}`
    this.#own.set(id, stream)
    return id
  }

  remove(id: string): void {
    this.#own.delete(id)
  }

  /** Finds a stream in any thread of the process. `client` is the id of the client's session. */
  async find(id: string, client: string): Promise<SseStream | undefined> {
    const own = this.#own.get(id)
    if (own !== undefined) return own
    const thread = threadOf(id)
    if (thread === this.#name || (await isRunning(thread)) === false) return undefined
    this.#watchThread(thread)
    const reply = await this.#ask(thread, (by) => ({ find: id, client, by })).catch(() => undefined)
    return reply?.kind === 'found' ? new RemoteStream(this, id, reply) : undefined
  }

  #others(): BroadcastChannel {
    if (this.#channel !== undefined) return this.#channel
    const channel = new BroadcastChannel('sluice mcp streams')
    channel.onmessage = (event) => this.#receive((event as { data: ShareMessage }).data)
    channel.unref()
    this.#channel = channel
    return channel
  }

  #receive(message: ShareMessage): void {
    if ('reply' in message) this.#remote.get(message.by)?.onReply(message.reply)
    else if ('dropped' in message) this.#drop(message.dropped)
    else if ('paused' in message) this.#pause(message.paused, message.isPaused)
    else if ('find' in message) this.#onFind(message)
    else this.#onListener(message)
  }

  #onFind({ find, client, by }: Extract<StreamQuestion, { find: string }>): void {
    if (threadOf(find) !== this.#name) return
    const stream = this.#own.get(find)
    if (stream === undefined) this.#reply(by, { kind: 'lost' })
    else {
      this.#onUse(client)
      const { messagePath, label } = stream
      this.#reply(by, { kind: 'found', messagePath, label })
    }
  }

  /** Adds a listener of another thread to a stream of this one. */
  #onListener(question: Exclude<StreamQuestion, { find: string } | { paused: string }>): void {
    const id = 'expect' in question ? question.expect : question.listen
    if (threadOf(id) !== this.#name) return
    const { by } = question
    const stream = this.#own.get(id)
    if (stream === undefined) {
      this.#reply(by, { kind: 'lost' })
      return
    }
    const over = (reply: StreamReply) => {
      this.#drops.delete(by)
      this.#reply(by, reply)
    }
    const listener: ResponseListener = {
      onMessage: ({ text }, fields) => this.#reply(by, { kind: 'message', text, fields }),
      onEnd: () => over({ kind: 'end' }),
      onFailure: ({ message }) => over({ kind: 'failure', text: message }),
    }
    try {
      this.#drops.set(by, this.#addTo(stream, question, listener))
      this.#reply(by, { kind: 'taken' })
    } catch (thrown) {
      if (!(thrown instanceof TargetFailure)) throw thrown
      listener.onFailure(thrown)
    }
  }

  #addTo(
    stream: SseStream,
    question: Exclude<StreamQuestion, { find: string } | { paused: string }>,
    listener: ResponseListener,
  ): () => void {
    if ('listen' in question) return stream.listen(listener)
    const { id, progressToken } = question
    void stream.expect(id, { listener, progressToken })
    return () => stream.forget(id)
  }

  #drop(by: string): void {
    const drop = this.#drops.get(by)
    this.#drops.delete(by)
    drop?.()
  }

  #pause(id: string, isPaused: boolean): void {
    const stream = this.#own.get(id)
    if (isPaused) stream?.pause()
    else stream?.resume()
  }

  #reply(by: string, reply: StreamReply): void {
    this.#others().postMessage({ by, reply } satisfies ShareMessage)
  }

  // --- streams of other threads ---

  /** Sends a question. Resolves to the first reply; rejects with a TargetFailure if none comes in time. */
  #ask(thread: string, question: (by: string) => StreamQuestion): Promise<StreamReply> {
    return new Promise((resolve, reject) => {
      const by = newSessionId()
      const timer = setTimeout(() => {
        this.#remote.delete(by)
        reject(new TargetFailure('the thread with the session does not answer'))
      }, replyMs)
      const onReply = (reply: StreamReply) => {
        clearTimeout(timer)
        this.#remote.delete(by)
        resolve(reply)
      }
      this.#remote.set(by, { thread, onReply })
      this.post(question(by))
    })
  }

  /**
   * Adds a listener to a stream of another thread. Returns its name, and a promise that resolves when the thread
   * has added it.
   */
  attach(
    id: string,
    listener: ResponseListener,
    question: (by: string) => StreamQuestion,
  ): { by: string; taken: Promise<void> } {
    const by = newSessionId()
    const { promise: taken, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => end(lost()), replyMs)
    timer.unref()
    let isTaken = false
    const end = (failure: TargetFailure | undefined) => {
      clearTimeout(timer)
      this.#remote.delete(by)
      if (!isTaken) reject(failure ?? lost())
      else if (failure === undefined) listener.onEnd()
      else listener.onFailure(failure)
    }
    const onReply = (reply: StreamReply) => {
      switch (reply.kind) {
        case 'message':
          listener.onMessage?.(readMessage(reply.text), reply.fields)
          break
        case 'taken':
          clearTimeout(timer)
          isTaken = true
          resolve()
          break
        case 'failure':
          end(new TargetFailure(reply.text))
          break
        default:
          end(reply.kind === 'end' ? undefined : lost())
      }
    }
    const onDetach = () => {
      clearTimeout(timer)
      reject(lost())
    }
    this.#remote.set(by, { thread: threadOf(id), onReply, onDetach })
    this.post(question(by))
    return { by, taken }
  }

  /** Removes a listener from a stream of another thread. */
  detach(by: string): void {
    const found = this.#remote.get(by)
    if (found === undefined) return
    this.#remote.delete(by)
    found.onDetach?.()
    this.post({ dropped: by })
  }

  post(message: ShareMessage): void {
    this.#others().postMessage(message)
  }

  /** Fails what waits for a thread when the thread ends. */
  #watchThread(thread: string): void {
    if (this.#watchedThreads.has(thread)) return
    this.#watchedThreads.add(thread)
    threadEnd(thread).then(() => {
      this.#watchedThreads.delete(thread)
      for (const one of [...this.#remote.values()]) {
        if (one.thread === thread) one.onReply({ kind: 'lost' })
      }
    }, ignoreEnd)
  }
}

// The lock is not granted if this thread ends first.
const ignoreEnd = (): void => {}

/** A stream of another thread. */
class RemoteStream implements SseStream {
  readonly label: string | undefined
  readonly messagePath: string
  readonly #shared: SharedStreams
  readonly #id: string
  /** Names of the listeners, by id of the request. */
  readonly #pending = new Map<string, string>()

  constructor(
    shared: SharedStreams,
    id: string,
    { messagePath, label }: Extract<StreamReply, { kind: 'found' }>,
  ) {
    this.#shared = shared
    this.#id = id
    this.label = label
    this.messagePath = messagePath
  }

  async expect(id: string, { listener, progressToken }: PendingResponse): Promise<void> {
    const ask = (by: string) => ({ expect: this.#id, by, id, progressToken })
    const { by, taken } = this.#shared.attach(this.#id, listener, ask)
    this.#pending.set(id, by)
    await taken
  }

  forget(id: string): void {
    const by = this.#pending.get(id)
    this.#pending.delete(id)
    if (by !== undefined) this.#shared.detach(by)
  }

  listen(listener: ResponseListener): () => void {
    const ask = (by: string) => ({ listen: this.#id, by })
    const { by, taken } = this.#shared.attach(this.#id, listener, ask)
    let isRemoved = false
    taken.catch(() => {
      if (!isRemoved) listener.onEnd()
    })
    return () => {
      isRemoved = true
      this.#shared.detach(by)
    }
  }

  pause(): void {
    this.#shared.post({ paused: this.#id, isPaused: true })
  }

  resume(): void {
    this.#shared.post({ paused: this.#id, isPaused: false })
  }
}
