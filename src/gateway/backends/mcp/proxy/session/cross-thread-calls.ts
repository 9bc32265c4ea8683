/**
 * Calls between clients and servers of different eras. The requests of a client may reach any thread, so what
 * concerns the call of another thread is passed on to all of them.
 */

import { codes, errorText } from '../../json-rpc.ts'
import { readRequest } from '../../message.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import { refusedWith, type TargetFailure } from '../target/target-failure.ts'
import { type Flow, idleFlow } from '../target/transport.ts'
import {
  forwardingListener,
  isLast,
  type ListenerEvent,
  passEvent,
  ThreadReplies,
} from './thread-replies.ts'
import { ThreadChannel } from './threads.ts'

/**
 * The failure of a request that continues a call which no thread of this process holds: it has expired, was
 * served by another process, or belongs to another client. The client can only begin again.
 */
function notHeld({ text }: CallInput): TargetFailure {
  const message =
    'The call of this requestState no longer waits for input. Send the request again without requestState.'
  const body = errorText(readRequest(text)?.id, codes.invalidParams, message)
  return refusedWith('the call no longer waits for input', 400, body)
}

/** A message between threads. */
type CallMessage =
  /** A client's response to a server's request. */
  | { readonly responded: string; readonly text: string }
  /** A client has cancelled its request. */
  | { readonly cancelled: string }
  | Resumption
  /** The next event of the call. `by` is the thread that received the client's retry. */
  | { readonly by: string; readonly event: ListenerEvent }
  /** The client of a resumed call has gone. */
  | { readonly left: string }

/** A client has come back to a call that waits for its input. */
interface Resumption {
  /** Id of the call. */
  readonly resumed: string
  readonly owner: string
  /** Names the return of the client. */
  readonly by: string
  readonly input: CallInput
}

/** With what a client comes back. */
export interface CallInput {
  /** The request. */
  readonly text: string
  /** Responses to the server's requests by key, as JSON. */
  readonly responses: readonly (readonly [key: string, response: string])[]
}

interface HeldCall {
  resume(input: CallInput, listener: ResponseListener): void
  /** Called if the client of a resumed call has gone. */
  leave(): void
}

/** Maximum number of calls that wait for input in this thread. The oldest one is given up first. */
const maxHeld = 1_000
/** Maximum time for the thread of a call to respond. */
const takenMs = 5_000

export class CrossThreadCalls {
  readonly #waiting = new Map<string, (text: string) => void>()
  readonly #running = new Map<string, () => void>()
  readonly #held = new Map<string, HeldCall & { readonly owner: string }>()
  readonly #resumed = new ThreadReplies<ListenerEvent>()
  readonly #leaves = new Map<string, () => void>()
  readonly #channel = new ThreadChannel<CallMessage>('bridge', (message) => this.#receive(message))

  #receive(message: CallMessage): void {
    if ('responded' in message) this.#waiting.get(message.responded)?.(message.text)
    else if ('cancelled' in message) this.#running.get(message.cancelled)?.()
    else if ('resumed' in message) this.#onResumed(message)
    else if ('by' in message) this.#resumed.receive(message.by, message.event)
    else this.#leaves.get(message.left)?.()
  }

  #onResumed({ resumed, owner, by, input }: Resumption): void {
    const held = this.#held.get(resumed)
    if (held === undefined || held.owner !== owner) return
    const send = (event: ListenerEvent) => this.#channel.publish({ by, event })
    this.#leaves.set(by, () => held.leave())
    send({ kind: 'taken' })
    held.resume(
      input,
      forwardingListener(send, () => this.#leaves.delete(by)),
    )
  }

  /**
   * Keeps a call that waits for the client's input. Only a client with the same owner can resume it. Returns a
   * function that forgets the call.
   */
  hold(id: string, owner: string, held: HeldCall): () => void {
    this.#channel.open()
    const [oldest] = this.#held.size >= maxHeld ? this.#held.values() : []
    oldest?.leave()
    this.#held.set(id, { ...held, owner })
    return () => this.#held.delete(id)
  }

  /** Continues a held call, in whichever thread it is. */
  resume(id: string, owner: string, input: CallInput, listener: ResponseListener): Flow {
    const by = this.#resumed.expect(takenMs, { kind: 'lost' }, (event) => {
      if (isLast(event)) this.#resumed.delete(by)
      if (event.kind === 'lost') listener.onFailure(notHeld(input))
      else passEvent(event, listener)
    })
    this.#channel.publish({ resumed: id, owner, by, input })
    const close = () => {
      this.#resumed.delete(by)
      this.#channel.publish({ left: by })
    }
    return { ...idleFlow, close }
  }

  /** Waits for the client's response to a request with this key. Returns a function that stops waiting. */
  expect(key: string, resolve: (text: string) => void): () => void {
    this.#channel.open()
    this.#waiting.set(key, resolve)
    return () => this.#waiting.delete(key)
  }

  /** Passes a client's response to the thread that waits for it. */
  respond(key: string, text: string): void {
    this.#channel.publish({ responded: key, text })
  }

  /** Registers a running request that the client may cancel. Returns a function that removes it. */
  run(key: string, cancel: () => void): () => void {
    this.#channel.open()
    this.#running.set(key, cancel)
    return () => this.#running.delete(key)
  }

  cancel(key: string): void {
    this.#channel.publish({ cancelled: key })
  }
}
