/**
 * Shares the streams of the older transport between threads. A session has one stream, in the
 * thread that opened it. Other threads POST their messages; that thread passes on the responses.
 */

import { newId } from '../../ids.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import { TargetFailure } from '../target/target-failure.ts'
import {
  forwardingListener,
  isLast,
  type ListenerEvent,
  passEvent,
  ThreadReplies,
} from './thread-replies.ts'
import { isRunning, ThreadChannel, threadEnd } from './threads.ts'

/** A request that waits for its response on the stream. */
export interface PendingResponse {
  readonly listener: ResponseListener
  /** Progress token of the request, as JSON. */
  readonly progressToken: string | undefined
}

/** The stream that carries all messages of one server in a session. */
export interface SseStream {
  /** Label of the connected endpoint. */
  readonly label: string | undefined
  /** Path and query that messages are posted to. */
  readonly messagePath: string
  /**
   * Passes the response to the request with this id to its listener. The request may be sent once this has
   * returned or resolved. Throws or rejects with a TargetFailure.
   */
  expect(id: string, pending: PendingResponse): void | Promise<void>
  forget(id: string): void
  /** Adds a listener for messages that belong to no request. Returns a function that removes it. */
  listen(listener: ResponseListener): () => void
  pause(): void
  resume(): void
}

/** What the thread of a stream sends to another one. */
type StreamReply = FoundStream | ListenerEvent

interface FoundStream {
  readonly kind: 'found'
  readonly messagePath: string
  readonly label: string | undefined
}

/** Adds a listener of another thread to a stream. `by` names the listener. */
type ListenerQuestion = { readonly by: string } & (
  | { readonly expect: string; readonly id: string; readonly progressToken: string | undefined }
  | { readonly listen: string }
)

/** A message between threads. */
type StreamMessage =
  /** `client` is the id of the client's session. */
  | { readonly find: string; readonly client: string; readonly by: string }
  | ListenerQuestion
  | { readonly paused: string; readonly isPaused: boolean }
  /** The listener is needed no more. */
  | { readonly dropped: string }
  | { readonly by: string; readonly reply: StreamReply }

/** A listener of this thread at a stream of another one. */
interface AttachedListener {
  /** Resolves when the thread has added it; rejects with a TargetFailure if it does not. */
  readonly added: Promise<void>
  remove(): void
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
  readonly #replies = new ThreadReplies<StreamReply>()
  readonly #watchedThreads = new Set<string>()
  readonly #channel = new ThreadChannel<StreamMessage>('streams', (one) => this.#receive(one))
  #name = ''

  /** `nameThread` resolves to the name of this thread. `onUse` is called if another thread uses a session. */
  constructor(nameThread: () => Promise<string>, onUse: (client: string) => void) {
    this.#nameThread = nameThread
    this.#onUse = onUse
  }

  /** Adds a stream of this thread. Resolves to its id, which names the thread. */
  async add(stream: SseStream): Promise<string> {
    this.#name = await this.#nameThread()
    this.#channel.open()
    const id = `${this.#name} ${newId()}`
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
    const ask = (by: string) => this.post({ find: id, client, by })
    const reply = await this.#replies.ask(replyMs, { kind: 'lost' }, ask, thread)
    return reply.kind === 'found' ? new RemoteStream(this, id, reply) : undefined
  }

  #receive(message: StreamMessage): void {
    if ('reply' in message) this.#replies.receive(message.by, message.reply)
    else if ('dropped' in message) this.#drop(message.dropped)
    else if ('paused' in message) this.#pause(message.paused, message.isPaused)
    else if ('find' in message) this.#onFind(message.find, message.client, message.by)
    else this.#onListener(message)
  }

  #onFind(id: string, client: string, by: string): void {
    if (threadOf(id) !== this.#name) return
    const stream = this.#own.get(id)
    if (stream !== undefined) this.#onUse(client)
    const reply: StreamReply = stream
      ? { kind: 'found', messagePath: stream.messagePath, label: stream.label }
      : { kind: 'lost' }
    this.post({ by, reply })
  }

  /** Adds a listener of another thread to a stream of this one. */
  #onListener(question: ListenerQuestion): void {
    const id = 'expect' in question ? question.expect : question.listen
    if (threadOf(id) !== this.#name) return
    const { by } = question
    const send = (reply: StreamReply) => this.post({ by, reply })
    const stream = this.#own.get(id)
    if (stream === undefined) {
      send({ kind: 'lost' })
      return
    }
    const listener = forwardingListener(send, () => this.#drops.delete(by))
    try {
      this.#drops.set(by, addTo(stream, question, listener))
      send({ kind: 'taken' })
    } catch (thrown) {
      if (!(thrown instanceof TargetFailure)) throw thrown
      listener.onFailure(thrown)
    }
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

  // --- streams of other threads ---

  /** Adds a listener to a stream of another thread. `question` gets the name of the listener. */
  attach(
    id: string,
    listener: ResponseListener,
    question: (by: string) => ListenerQuestion,
  ): AttachedListener {
    const { promise: added, resolve, reject } = Promise.withResolvers<void>()
    let isAdded = false
    const onReply = (reply: StreamReply) => {
      if (reply.kind === 'found') return
      if (isLast(reply)) this.#replies.delete(by)
      if (reply.kind === 'taken') {
        isAdded = true
        resolve()
      } else if (!isAdded) reject(reply.kind === 'failure' ? new TargetFailure(reply.text) : lost())
      else if (reply.kind === 'lost') listener.onFailure(lost())
      else passEvent(reply, listener)
    }
    const by = this.#replies.expect(replyMs, { kind: 'lost' }, onReply, threadOf(id))
    this.post(question(by))
    const remove = () => {
      if (!this.#replies.delete(by)) return
      reject(lost())
      this.post({ dropped: by })
    }
    return { added, remove }
  }

  post(message: StreamMessage): void {
    this.#channel.post(message)
  }

  /** Fails what waits for a thread when the thread ends. */
  #watchThread(thread: string): void {
    if (this.#watchedThreads.has(thread)) return
    this.#watchedThreads.add(thread)
    threadEnd(thread).then(() => {
      this.#watchedThreads.delete(thread)
      this.#replies.lose(thread)
    }, ignoreEnd)
  }
}

function addTo(
  stream: SseStream,
  question: ListenerQuestion,
  listener: ResponseListener,
): () => void {
  if ('listen' in question) return stream.listen(listener)
  const { id, progressToken } = question
  void stream.expect(id, { listener, progressToken })
  return () => stream.forget(id)
}

// The lock is not granted if this thread ends first.
const ignoreEnd = (): void => {}

/** A stream of another thread. */
class RemoteStream implements SseStream {
  readonly label: string | undefined
  readonly messagePath: string
  readonly #shared: SharedStreams
  readonly #id: string
  /** By id of the request. */
  readonly #pending = new Map<string, AttachedListener>()

  constructor(shared: SharedStreams, id: string, { messagePath, label }: FoundStream) {
    this.#shared = shared
    this.#id = id
    this.label = label
    this.messagePath = messagePath
  }

  async expect(id: string, { listener, progressToken }: PendingResponse): Promise<void> {
    const ask = (by: string) => ({ expect: this.#id, by, id, progressToken })
    const attached = this.#shared.attach(this.#id, listener, ask)
    this.#pending.set(id, attached)
    await attached.added
  }

  forget(id: string): void {
    this.#pending.get(id)?.remove()
    this.#pending.delete(id)
  }

  listen(listener: ResponseListener): () => void {
    const ask = (by: string) => ({ listen: this.#id, by })
    const { added, remove } = this.#shared.attach(this.#id, listener, ask)
    let isRemoved = false
    added.catch(() => {
      if (!isRemoved) listener.onEnd()
    })
    return () => {
      isRemoved = true
      remove()
    }
  }

  pause(): void {
    this.#shared.post({ paused: this.#id, isPaused: true })
  }

  resume(): void {
    this.#shared.post({ paused: this.#id, isPaused: false })
  }
}
