/** GET: the messages that servers send on their own, in one stream. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { type EventFields, eventText, type McpEvent } from '../../event-stream.ts'
import { type McpMessage, readMessage } from '../../message.ts'
import { readPairs, writePairs } from '../../naming.ts'
import { notificationText, requestText } from '../../responses.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { MessageStream } from '../exchange/message-stream.ts'
import { messageForClient } from '../relay/server-messages.ts'
import { UnavailableLists } from '../relay/unavailable-lists.ts'
import { newSessionId } from '../session/session-state.ts'
import { lostSession, TargetFailure, toFailure, verdictOf } from '../target/refusals.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import {
  ask,
  type Flow,
  ignored,
  ownLimitMs,
  type Transport,
  withLimit,
} from '../target/transport.ts'
import { never, ownId } from '../upstream/begin-session.ts'
import { type ClientSession, findSession, SessionEnded } from '../upstream/client-session.ts'

/** How long a client waits until each of several servers has begun or refused its stream. */
const openMs = 5_000
/** Delay before the stream of a server is opened again. Every failure doubles it. */
const firstRetryMs = 1_000
/** Minimum delay, if the server states one. */
const minRetryMs = 10
/** Maximum delay between two attempts to open the stream, unless the server states more. */
const maxRetryMs = 30_000

export function serveGet(
  exchange: McpExchange,
): RespondVerdict | Promise<RespondVerdict | undefined> {
  const session = findSession(exchange)
  if ('kind' in session) return session
  const { context, shared, notes } = exchange
  const from = context.exchange.request.headers.get('last-event-id')
  const messageStream = new MessageStream(exchange)
  const streams = new ServerStreams(session, messageStream, from)
  const key = `stream ${newSessionId()}`
  shared.live(session.state).held.set(key, { close: () => messageStream.end() })
  // A session with an open stream stays in memory.
  const stopSweeps = shared.onSweep(() => shared.live(session.state))
  const removeStop = shared.onStop(() => messageStream.end())
  notes.onClose(() => {
    removeStop()
    stopSweeps()
    shared.known(session.state)?.held.delete(key)
    streams.close()
    messageStream.end()
  })
  const isOnly = exchange.backend.targets.length === 1
  // One silent server does not keep the client from the streams of the others.
  const opening = withLimit(streams.open(), isOnly ? 0 : openMs, () => messageStream.open())
  opening.then(
    (failures) => settle(messageStream, failures, isOnly),
    (thrown) => {
      if (!(thrown instanceof TargetFailure)) messageStream.fail(thrown)
    },
  )
  return messageStream.result
}

type Outcome = TargetFailure | SessionEnded | undefined

/** If no server has a stream, sends the client the reason. */
function settle(messageStream: MessageStream, failures: readonly Outcome[], isOnly: boolean): void {
  if (failures.includes(undefined)) return
  const [first] = failures
  const isRefused = failures.every(
    (one) => one instanceof TargetFailure && one.httpResponse?.status === 405,
  )
  const isLost = first === undefined || failures.some((one) => one instanceof SessionEnded)
  if (messageStream.isStream) {
    // The gateway has something to report itself, so that the stream has begun.
    if (isLost || isOnly) messageStream.end()
  } else if (isLost) {
    messageStream.respond(lostSession())
  } else if (first instanceof TargetFailure && (isRefused || isOnly)) {
    messageStream.respond(verdictOf(first, undefined))
  } else messageStream.open()
}

/** The stream of one server. It may be closed until the next attempt to open it. */
interface ServerStream {
  flow?: Flow | undefined
  retry?: NodeJS.Timeout
  retryMs: number
  /** Delay that the server has stated. */
  statedMs?: number
  isGone?: boolean
}

/** Called with the reconnection time that the server has stated, if any. */
function noteRetry(stream: ServerStream, retry: number | undefined): void {
  if (retry === undefined) return
  stream.statedMs = Math.max(retry, minRetryMs)
  stream.retryMs = stream.statedMs
}

/**
 * Key of an entry in event ids that marks the joined stream of all servers. Ids of request streams lack it.
 */
const streamKey = ''

const listChanged = (kind: string): string => notificationText(`notifications/${kind}/list_changed`)

const lists = ['tools', 'prompts', 'resources'].map(listChanged)

/** The streams of all servers of a session, joined into one. */
export class ServerStreams {
  readonly #session: ClientSession
  readonly #exchange: McpExchange
  readonly #messageStream: MessageStream
  readonly #from: string | undefined
  /** Id of the last event of each target. */
  readonly #positions: Map<string, string>
  /** The target whose request stream is resumed, which has an end; undefined for other streams. */
  readonly #resumed: string | undefined
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
    this.#resumed = isOwn ? undefined : [...positions.keys()][0]
    this.#positions = positions
  }

  get #isOnly(): boolean {
    return this.#exchange.backend.targets.length === 1
  }

  /** Opens the streams of all servers. Resolves with one outcome for each: its failure, or undefined. */
  open(): Promise<Outcome[]> {
    const { shared } = this.#exchange
    const stopChanges = shared.onChange(() => this.#onChange())
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
    return Promise.all(wanted.map((entry) => this.#open(entry)))
  }

  async #open(entry: McpTargetEntry): Promise<Outcome> {
    const { name } = entry.target
    const stream: ServerStream = this.#streams.get(name) ?? { retryMs: firstRetryMs }
    this.#streams.set(name, stream)
    try {
      await this.#session.use(
        entry,
        (transport) => this.#listen(entry, transport, stream),
        'stream',
      )
      return undefined
    } catch (thrown) {
      if (thrown instanceof SessionEnded) return thrown
      const failure = toFailure(thrown)
      // A server that does not support streams is not retried.
      if (failure.httpResponse?.status !== 405) this.#again(entry, stream)
      return failure
    }
  }

  /** Opens the stream of a server. Resolves when the stream has begun; rejects if that fails. */
  #listen(entry: McpTargetEntry, transport: Transport, stream: ServerStream): Promise<void> {
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
        stream.retryMs = stream.statedMs ?? firstRetryMs
        this.#messageStream.open()
        resolve()
      },
      onMessage: (message: McpMessage, eventFields: EventFields | undefined) => {
        noteRetry(stream, eventFields?.retry)
        const text = messageForClient(this.#session, entry, message)
        if (text === undefined) return
        this.#messageStream.send(text, this.#fieldsForClient(name, eventFields))
        this.#slowDown(stream)
      },
      onEvent: (event: McpEvent) => {
        const { id, retry } = event
        if (id === undefined && retry === undefined) return
        noteRetry(stream, retry)
        const eventFields = this.#fieldsForClient(name, { id, retry })
        this.#messageStream.sendEvent(eventText({ ...event, id: eventFields?.id }))
        this.#slowDown(stream)
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
    const own = this.#resumed === undefined ? [[streamKey, ''] as const] : []
    return { ...eventFields, id: writePairs([...own, ...this.#positions]) }
  }

  #slowDown({ flow }: ServerStream): void {
    if (flow === undefined || !this.#messageStream.isSlow) return
    flow.pause()
    this.#messageStream.onDrain(() => flow.resume())
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
    stream.retry = setTimeout(() => {
      if (!stream.isGone) void this.#open(entry).then((one) => this.#onRetried(one))
    }, stream.retryMs)
    stream.retry.unref()
    stream.retryMs = Math.max(Math.min(stream.retryMs * 2, maxRetryMs), stream.statedMs ?? 0)
  }

  #onRetried(failure: Outcome): void {
    if (failure instanceof SessionEnded) this.#messageStream.end()
  }

  /** Called after a change of the targets: opens and closes streams, and notifies the client of new lists. */
  #onChange(): void {
    if (this.#resumed !== undefined) return
    const { shared, name } = this.#exchange
    const found = shared.backends.find(name)
    if (found === undefined) {
      this.#messageStream.end()
      return
    }
    const now = new Set(found.targets.map(({ target }) => target.name))
    const gone = [...this.#streams.keys()].filter((name) => !now.has(name))
    const fresh = found.targets.filter(({ target }) => !this.#streams.has(target.name))
    if (gone.length + fresh.length === 0) return
    for (const name of gone) this.#drop(name)
    for (const entry of fresh) void this.#open(entry).then((one) => this.#onRetried(one))
    for (const text of lists) this.#messageStream.send(text)
  }

  // --- what no server reports ---

  #find(name: string): McpTargetEntry | undefined {
    return this.#exchange.backend.targets.find(({ target }) => target.name === name)
  }

  /** Called when a session at a target was begun again: it may have other lists and resources. */
  onRenewed(name: string, uris: readonly string[]): void {
    this.#missing.drop(name)
    for (const text of lists) this.#messageStream.send(text)
    const entry = this.#find(name)
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
    this.#missing.add(name, method)
  }

  #onFound(name: string, method: string): void {
    this.#exchange.shared.notices.found(this.#session.state.id, name, method)
    const [kind = ''] = method.split('/')
    this.#messageStream.send(listChanged(kind))
  }

  /** Whether the target responds to this method with a list? */
  async #hasList(name: string, method: string): Promise<boolean> {
    const entry = this.#find(name)
    if (entry === undefined) return false
    const id = ownId(method)
    const request = { text: requestText(id, method, '{}'), id, method }
    const sent = this.#session.use(entry, (transport) =>
      ask(transport, request, ignored, never, ownLimitMs),
    )
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
    clearTimeout(stream.retry)
    stream.flow?.close()
  }

  close(): void {
    this.#stopWatching?.()
    this.#missing.drop()
    for (const name of [...this.#streams.keys()]) this.#drop(name)
  }
}
