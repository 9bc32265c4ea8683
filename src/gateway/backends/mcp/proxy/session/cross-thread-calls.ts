/**
 * What one thread keeps for clients and servers of different eras. The requests of a client may reach any
 * thread, so what concerns another thread is passed on to all of them.
 */
import { BroadcastChannel } from 'node:worker_threads'
import { readMessage } from '../../message.ts'
import { codes, errorText } from '../../responses.ts'
import { json, TargetFailure } from '../target/refusals.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import type { Flow } from '../target/transport.ts'
import { newSessionId } from './session-state.ts'

/**
 * The failure of a request that continues a call which no thread of this process holds: it has expired, was
 * served by another process, or belongs to another client. The client can only begin again.
 */
function notHeld({ text }: HeldInput): TargetFailure {
  const message =
    'The call of this requestState no longer waits for input. Send the request again without requestState.'
  const request = readMessage(text)
  const id = request.kind === 'request' ? request.id : undefined
  const body = Buffer.from(errorText(id, codes.invalidParams, message))
  const httpResponse = { status: 400, headers: [json], body }
  return new TargetFailure('the call no longer waits for input', { httpResponse })
}

/** A message between threads. */
type BridgeMessage =
  /** A client's response to a server's request. */
  | { readonly answered: string; readonly text: string }
  /** A client has cancelled its request. */
  | { readonly cancelled: string }
  | Resumption
  /** The next event of the call. `by` is the thread that received the client's retry. */
  | { readonly by: string; readonly event: HeldEvent }
  /** The client of a resumed call has gone. */
  | { readonly left: string }
  /** The level or a resource of a session has changed. */
  | { readonly changed: string; readonly change: SessionChange }

/** A client has come back to a call that waits for its input. */
interface Resumption {
  /** Id of the call. */
  readonly resumed: string
  readonly owner: string
  /** Names the return of the client. */
  readonly by: string
  readonly input: HeldInput
}

/** With what a client comes back. */
export interface HeldInput {
  /** The request. */
  readonly text: string
  /** Responses to the server's requests by key, as JSON. */
  readonly responses: readonly (readonly [key: string, response: string])[]
}

interface HeldEvent {
  readonly kind: 'taken' | 'stream' | 'message' | 'end' | 'failure'
  /** The message, or why the call failed. */
  readonly text?: string
}

interface Held {
  resume(input: HeldInput, listener: ResponseListener): void
  /** Called if the client of a resumed call has gone. */
  leave(): void
}

/** What a legacy client has set for its session, which each request to a modern server must contain. */
interface SessionSettings {
  logLevel: string | undefined
  /** Subscribed resources, by target and URI. */
  readonly resources: Set<string>
}

type SessionChange =
  | { readonly logLevel: string }
  | { readonly resource: string; readonly isSubscribed: boolean }

/** Maximum number of calls that wait for input in this thread. The oldest one is given up first. */
const maxHeld = 1_000
/** Maximum time for the thread of a call to respond. */
const takenMs = 5_000
/** Maximum number of sessions with settings, and of resources of each. */
const maxSessions = 50_000
const maxResources = 1_000

export class Bridge {
  readonly #waiting = new Map<string, (text: string) => void>()
  readonly #running = new Map<string, () => void>()
  readonly #settings = new Map<string, SessionSettings>()
  readonly #watchers = new Map<string, Set<() => void>>()
  readonly #held = new Map<string, Held & { readonly owner: string }>()
  readonly #resumed = new Map<string, (event: HeldEvent) => void>()
  readonly #leaves = new Map<string, () => void>()
  #channel: BroadcastChannel | undefined

  #others(): BroadcastChannel {
    if (this.#channel !== undefined) return this.#channel
    const channel = new BroadcastChannel('sluice mcp bridge')
    channel.onmessage = (event) => this.#receive((event as { data: BridgeMessage }).data)
    channel.unref()
    this.#channel = channel
    return channel
  }

  #receive(message: BridgeMessage): void {
    if ('answered' in message) this.#waiting.get(message.answered)?.(message.text)
    else if ('cancelled' in message) this.#running.get(message.cancelled)?.()
    else if ('resumed' in message) this.#onResumed(message)
    else if ('by' in message) this.#resumed.get(message.by)?.(message.event)
    else if ('left' in message) this.#leaves.get(message.left)?.()
    else this.#apply(message.changed, message.change)
  }

  #onResumed({ resumed, owner, by, input }: Resumption): void {
    const held = this.#held.get(resumed)
    if (held === undefined || held.owner !== owner) return
    const send = (event: HeldEvent) => this.#send({ by, event })
    const over = (event: HeldEvent) => {
      this.#leaves.delete(by)
      send(event)
    }
    this.#leaves.set(by, () => held.leave())
    send({ kind: 'taken' })
    held.resume(input, {
      onStream: () => send({ kind: 'stream' }),
      onMessage: ({ text }) => send({ kind: 'message', text }),
      onEnd: () => over({ kind: 'end' }),
      onFailure: ({ message }) => over({ kind: 'failure', text: message }),
    })
  }

  /**
   * Keeps a call that waits for the client's input. Only a client with the same owner can resume it. Returns a
   * function that forgets the call.
   */
  hold(id: string, owner: string, held: Held): () => void {
    this.#others()
    const [oldest] = this.#held.size >= maxHeld ? this.#held : []
    if (oldest !== undefined) oldest[1].leave()
    this.#held.set(id, { ...held, owner })
    return () => this.#held.delete(id)
  }

  /** Continues a held call, in whichever thread it is. */
  resume(id: string, owner: string, input: HeldInput, listener: ResponseListener): Flow {
    const by = newSessionId()
    const end = () => {
      clearTimeout(timer)
      this.#resumed.delete(by)
    }
    const timer = setTimeout(() => {
      end()
      listener.onFailure(notHeld(input))
    }, takenMs)
    timer.unref()
    this.#resumed.set(by, (event) => {
      if (event.kind === 'taken') clearTimeout(timer)
      else if (event.kind === 'stream') listener.onStream?.()
      else if (event.kind === 'message')
        listener.onMessage?.(readMessage(event.text ?? ''), undefined)
      else {
        end()
        if (event.kind === 'end') listener.onEnd()
        else listener.onFailure(new TargetFailure(event.text ?? 'the call has failed'))
      }
    })
    this.#send({ resumed: id, owner, by, input })
    const close = () => {
      end()
      this.#send({ left: by })
    }
    return { pause: () => {}, resume: () => {}, close }
  }

  #send(message: BridgeMessage): void {
    const others = this.#others()
    this.#receive(message)
    others.postMessage(message)
  }

  /** Waits for the client's response to a request with this key. Returns a function that stops waiting. */
  expect(key: string, resolve: (text: string) => void): () => void {
    this.#others()
    this.#waiting.set(key, resolve)
    return () => this.#waiting.delete(key)
  }

  /** Passes a client's response to the thread that waits for it. */
  respond(key: string, text: string): void {
    this.#send({ answered: key, text })
  }

  /** Registers a running request that the client may cancel. Returns a function that removes it. */
  run(key: string, cancel: () => void): () => void {
    this.#others()
    this.#running.set(key, cancel)
    return () => this.#running.delete(key)
  }

  cancel(key: string): void {
    this.#send({ cancelled: key })
  }

  settings(session: string): Readonly<SessionSettings> | undefined {
    this.#others()
    return this.#settings.get(session)
  }

  /** Changes the settings of a session in all threads. Returns false if there are too many resources. */
  change(session: string, change: SessionChange): boolean {
    const resources = this.#settings.get(session)?.resources.size ?? 0
    if ('resource' in change && change.isSubscribed && resources >= maxResources) return false
    this.#send({ changed: session, change })
    return true
  }

  #apply(session: string, change: SessionChange): void {
    const settings = this.#settings.get(session) ?? { logLevel: undefined, resources: new Set() }
    const [oldest] = this.#settings.size >= maxSessions ? this.#settings.keys() : []
    if (oldest !== undefined) this.#settings.delete(oldest)
    this.#settings.set(session, settings)
    if ('logLevel' in change) settings.logLevel = change.logLevel
    else if (change.isSubscribed) settings.resources.add(change.resource)
    else settings.resources.delete(change.resource)
    if ('resource' in change) for (const watcher of this.#watchers.get(session) ?? []) watcher()
  }

  /** Calls `watcher` when the resources of a session change. Returns a function that removes it. */
  watch(session: string, watcher: () => void): () => void {
    this.#others()
    const all = this.#watchers.get(session) ?? new Set()
    this.#watchers.set(session, all.add(watcher))
    return () => {
      all.delete(watcher)
      if (all.size === 0) this.#watchers.delete(session)
    }
  }

  /** Drops the settings of a session that has ended. */
  forget(session: string): void {
    this.#settings.delete(session)
  }
}
