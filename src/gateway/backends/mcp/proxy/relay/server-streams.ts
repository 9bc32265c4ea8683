/** The streams of all servers of a session, joined into one. */
import { listsChanged } from '../../eras/subscriptions.ts'
import { type EventFields, eventText, type McpEvent, requestKey } from '../../event-stream.ts'
import { gatewayRequestId } from '../../ids.ts'
import { codes, errorText, notificationText } from '../../json-rpc.ts'
import { type McpMessage, readMessage } from '../../message.ts'
import { isId, readPairs, writePairs } from '../../naming.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { MessageStream } from '../exchange/message-stream.ts'
import { jsonRefusal } from '../exchange/refusals.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import {
  askQuietly,
  type Flow,
  gatewayRequest,
  type SessionTransport,
  statusesForClient,
} from '../target/transport.ts'
import { type ClientSession, SessionEnded } from '../upstream/client-session.ts'
import { RetryTimer } from './retry-timer.ts'
import { messageForClient } from './server-messages.ts'
import { UnavailableLists } from './unavailable-lists.ts'

/** Whether the server has refused a GET for a reason that stays. */
const isFinal = ({ isInSession, httpResponse }: TargetFailure): boolean => {
  const status = httpResponse?.status ?? 0
  return isInSession || (status >= 400 && status < 500 && !statusesForClient.includes(status))
}

/** Why a stream did not begin; undefined if it did. */
export type StreamOutcome = TargetFailure | SessionEnded | undefined

/** The stream of one server. It may be closed until the next attempt to open it. */
interface ServerStream {
  flow?: Flow | undefined
  readonly retry: RetryTimer
  isGone?: boolean
}

/**
 * Key of an entry in event ids that marks the joined stream of all servers. Ids of request streams lack it.
 */
const streamKey = ''

export class ServerStreams {
  readonly #session: ClientSession
  readonly #exchange: McpExchange
  readonly #messageStream: MessageStream
  readonly #from: string | undefined
  /** Id of the last event of each target. */
  readonly #positions: Map<string, string>
  /** The target whose request stream is resumed, which has an end; undefined for other streams. */
  readonly #resumed: string | undefined
  /** Id of the request of a resumed stream as JSON, if it is known. */
  readonly #request: string | undefined
  readonly #streams = new Map<string, ServerStream>()
  readonly #missing = new UnavailableLists(
    (target, method) => this.#hasList(target, method),
    (target, method) => this.#onFound(target, method),
  )
  #stopWatching: (() => void) | undefined

  constructor(session: ClientSession, messageStream: MessageStream, from: string | undefined) {
    this.#session = session
    this.#exchange = session.exchange
    this.#messageStream = messageStream
    this.#from = from
    const positions = new Map(from === undefined || this.#isOnly ? [] : (readPairs(from) ?? []))
    const isOwn = positions.delete(streamKey)
    const request = positions.get(requestKey)
    positions.delete(requestKey)
    this.#request = request !== undefined && isId(request) ? request : undefined
    this.#resumed = isOwn ? undefined : [...positions.keys()][0]
    this.#positions = positions
  }

  get #isOnly(): boolean {
    return this.#exchange.only !== undefined
  }

  /** Opens the streams of all servers. Resolves with one outcome for each: its failure, or undefined. */
  open(): Promise<StreamOutcome[]> {
    const { shared } = this.#exchange
    const stopChanges = shared.changes.add(() => this.#onChange())
    // A stream of one request has only its own messages.
    const stopNotices =
      this.#resumed === undefined ? shared.notices.watch(this.#session.state.id, this) : () => {}
    this.#stopWatching = () => {
      stopChanges()
      stopNotices()
    }
    const wanted = this.#exchange.backend.targets.filter(
      ({ target }) => this.#resumed === undefined || target.name === this.#resumed,
    )
    if (wanted.length === 0 && this.#resumed !== undefined) this.#giveUp()
    return Promise.all(wanted.map((entry) => this.#open(entry)))
  }

  async #open(entry: McpTargetEntry): Promise<StreamOutcome> {
    const { name } = entry.target
    const stream: ServerStream = this.#streams.get(name) ?? { retry: new RetryTimer() }
    this.#streams.set(name, stream)
    try {
      await this.#session.use(
        entry,
        (transport) => this.#listen(entry, transport, stream),
        this.#resumed === undefined ? 'stream' : 'resumption',
      )
      return undefined
    } catch (thrown) {
      if (thrown instanceof SessionEnded) return thrown
      const failure = toFailure(thrown)
      if (isFinal(failure)) {
        if (this.#resumed !== undefined) return this.#giveUp(failure)
        this.#forgetPosition(name)
      }
      // A server that does not support streams is not retried.
      if (failure.httpResponse?.status !== 405) this.#again(entry, stream)
      return failure
    }
  }

  /** Called if the stream of a request cannot be resumed. Ends the request, because nothing else would. */
  #giveUp(failure?: TargetFailure): StreamOutcome {
    const why = `${this.#resumed}: the stream cannot be resumed, so the result is not known`
    if (this.#request !== undefined) {
      this.#messageStream.send(errorText(this.#request, codes.internal, why))
      this.#messageStream.end()
    } else this.#messageStream.respond(jsonRefusal(400, undefined, codes.invalidRequest, why))
    return failure
  }

  /** Called if a server no longer has the events after the last one. The client has missed some. */
  #forgetPosition(name: string): void {
    if (!this.#positions.delete(name)) return
    for (const text of listsChanged) this.#messageStream.send(text)
  }

  /** Opens the stream of a server. Resolves when the stream has begun; rejects if that fails. */
  #listen(entry: McpTargetEntry, transport: SessionTransport, stream: ServerStream): Promise<void> {
    const { name } = entry.target
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let hasBegun = false
    const ended = (failure: TargetFailure) => {
      if (hasBegun) this.#ended(entry, stream)
      else reject(failure)
    }
    const listener = {
      onStream: () => {
        hasBegun = true
        stream.retry.reset()
        this.#messageStream.open()
        resolve()
      },
      onMessage: (message: McpMessage, eventFields: EventFields | undefined) => {
        stream.retry.state(eventFields?.retry)
        const text = messageForClient(this.#session, entry, message)
        if (text === undefined) return
        this.#messageStream.send(text, this.#fieldsForClient(name, eventFields))
        this.#messageStream.slowDown(stream.flow)
      },
      onEvent: (event: McpEvent) => {
        const { id, retry } = event
        if (id === undefined && retry === undefined) return
        stream.retry.state(retry)
        const eventFields = this.#fieldsForClient(name, { id, retry })
        this.#messageStream.sendEvent(eventText({ ...event, id: eventFields?.id }))
        this.#messageStream.slowDown(stream.flow)
      },
      onEnd: () => ended(new TargetFailure('the server has no stream')),
      onFailure: ended,
    }
    const from = this.#isOnly ? this.#from : this.#positions.get(name)
    transport.listen(listener, from).then((flow) => {
      stream.flow = flow
      if (stream.isGone) flow.close()
    }, reject)
    return promise
  }

  /** Replaces the event id by the last event ids of all servers, so that each stream can be resumed. */
  #fieldsForClient(target: string, eventFields: EventFields | undefined): EventFields | undefined {
    if (eventFields?.id === undefined || this.#isOnly) return eventFields
    this.#positions.set(target, eventFields.id)
    const mark =
      this.#resumed === undefined
        ? ([streamKey, ''] as const)
        : this.#request && ([requestKey, this.#request] as const)
    const pairs = mark ? [mark, ...this.#positions] : this.#positions
    return { ...eventFields, id: writePairs(pairs) }
  }

  /**
   * Called when a server has ended its stream. If the client's stream has no other server, it ends as well
   * and the client resumes it. Otherwise the gateway opens the server's stream again.
   */
  #ended(entry: McpTargetEntry, stream: ServerStream): void {
    stream.flow = undefined
    if (stream.isGone) return
    if (this.#isOnly || this.#resumed !== undefined) this.#messageStream.end()
    else this.#again(entry, stream)
  }

  #again(entry: McpTargetEntry, stream: ServerStream): void {
    if (stream.isGone || this.#isOnly) return
    stream.retry.schedule(() => {
      if (!stream.isGone) this.#reopen(entry)
    })
  }

  #reopen(entry: McpTargetEntry): void {
    void this.#open(entry).then((failure) => {
      if (failure instanceof SessionEnded) this.#messageStream.end()
    })
  }

  /** Called after a change of the targets: opens and closes streams, and notifies the client of new lists. */
  #onChange(): void {
    if (this.#resumed !== undefined) return
    const found = this.#exchange.currentView?.backend
    if (found === undefined) {
      this.#messageStream.end()
      return
    }
    const now = new Set(found.targets.map(({ target }) => target.name))
    const gone = [...this.#streams.keys()].filter((name) => !now.has(name))
    const fresh = found.targets.filter(({ target }) => !this.#streams.has(target.name))
    if (gone.length + fresh.length === 0) return
    for (const name of gone) this.#drop(name)
    for (const entry of fresh) this.#reopen(entry)
    for (const text of listsChanged) this.#messageStream.send(text)
  }

  // --- what no server reports ---

  /** Called when a session at a target was begun again: it may have other lists and resources. */
  onRenewed(name: string, uris: readonly string[]): void {
    this.#missing.stop(name)
    for (const text of listsChanged) this.#messageStream.send(text)
    const entry = this.#exchange.find(name)
    if (entry === undefined) return
    for (const uri of uris) {
      const params = JSON.stringify({ uri })
      const updated = readMessage(notificationText('notifications/resources/updated', params))
      const text = messageForClient(this.#session, entry, updated)
      if (text !== undefined) this.#messageStream.send(text)
    }
  }

  /** Called if a target is missing in a list of the client. */
  onMissing(name: string, method: string): void {
    this.#missing.retry(name, method)
  }

  #onFound(name: string, method: string): void {
    this.#exchange.shared.notices.reportFound(this.#session.state.id, name, method)
    const [kind = ''] = method.split('/')
    this.#messageStream.send(notificationText(`notifications/${kind}/list_changed`))
  }

  /** Whether the target responds to this method with a list. */
  async #hasList(name: string, method: string): Promise<boolean> {
    const entry = this.#exchange.find(name)
    if (entry === undefined) return false
    const request = gatewayRequest(method, '{}', gatewayRequestId(method))
    const sent = this.#session.use(entry, (transport) => askQuietly(transport, request))
    try {
      return (await sent).response.error === undefined
    } catch (thrown) {
      if (thrown instanceof SessionEnded) this.#messageStream.end()
      else toFailure(thrown)
      return false
    }
  }

  #drop(name: string): void {
    const stream = this.#streams.get(name)
    this.#streams.delete(name)
    if (stream === undefined) return
    stream.isGone = true
    stream.retry.stop()
    stream.flow?.close()
  }

  close(): void {
    this.#stopWatching?.()
    this.#missing.stop()
    for (const name of [...this.#streams.keys()]) this.#drop(name)
  }
}
