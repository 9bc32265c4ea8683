/** GET: what servers send by themselves, all in one stream. */

import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { notificationText } from '../answers.ts'
import { eventText, type McpEvent } from '../event-stream.ts'
import type { McpMessage } from '../message.ts'
import { newSessionId } from '../session-state.ts'
import type { EventMark } from './answer-reader.ts'
import { TargetFailure, toFailure } from './failure.ts'
import { readPositions, streamKey, writePositions } from './marks.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { ExchangeOutlet } from './outlet.ts'
import { lostSession, verdictOf } from './refusals.ts'
import { messageForClient } from './server-messages.ts'
import { findSession } from './session-requests.ts'
import { type ClientSession, SessionEnded } from './target-session.ts'
import type { Flow, Transport } from './transport.ts'

/** Between attempts to take up the stream of a server that has ended it. */
const firstRetryMs = 1_000
const longestRetryMs = 30_000

export function serveGet(
  exchange: McpExchange,
): RespondVerdict | Promise<RespondVerdict | undefined> {
  const session = findSession(exchange)
  if ('kind' in session) return session
  const { context, hub, notes } = exchange
  const from = context.exchange.request.headers.get('last-event-id')
  const outlet = new ExchangeOutlet(context)
  const streams = new ServerStreams(session, outlet, from)
  const key = `stream ${newSessionId()}`
  hub.live(session.state).held.set(key, { close: () => outlet.end() })
  const endLooking = hub.onSweep(() => {
    // A session whose client listens is in use.
    hub.live(session.state)
    outlet.keepAlive()
  })
  const stayOn = hub.onStop(() => outlet.end())
  notes.onClose(() => {
    stayOn()
    endLooking()
    hub.known(session.state)?.held.delete(key)
    streams.close()
    outlet.end()
  })
  streams.open().then(
    (failures) => settle(outlet, failures, exchange.backend.targets.length === 1),
    (thrown) => outlet.fail(thrown),
  )
  return outlet.result
}

type Outcome = TargetFailure | SessionEnded | undefined

/** All servers have been asked, and where none has a stream the client is told why. */
function settle(outlet: ExchangeOutlet, failures: readonly Outcome[], isOnly: boolean): void {
  if (failures.includes(undefined)) return
  const answer = ({ status, headers = [], body, reason }: RespondVerdict) =>
    outlet.answer(status, headers, body, reason)
  const [first] = failures
  const isRefused = failures.every(
    (one) => one instanceof TargetFailure && one.answer?.status === 405,
  )
  if (first === undefined || failures.some((one) => one instanceof SessionEnded)) {
    answer(lostSession())
  } else if (first instanceof TargetFailure && (isRefused || isOnly)) {
    answer(verdictOf(first, undefined))
  } else outlet.open()
}

/** The stream of one server, as far as it is open. */
interface ServerStream {
  flow: Flow | undefined
  retry: NodeJS.Timeout | undefined
  retryMs: number
  isGone: boolean
}

const lists = ['tools', 'prompts', 'resources'].map((kind) =>
  notificationText(`notifications/${kind}/list_changed`),
)

/** The streams of all servers of a session, in one. */
export class ServerStreams {
  readonly #session: ClientSession
  readonly #exchange: McpExchange
  readonly #outlet: ExchangeOutlet
  readonly #from: string | undefined
  /** Last events, by target. */
  readonly #positions: Map<string, string>
  /** A stream that began with a request is taken up again: it is one server's, and has an end. */
  readonly #resumed: string | undefined
  readonly #streams = new Map<string, ServerStream>()
  #endLooking: (() => void) | undefined

  constructor(session: ClientSession, outlet: ExchangeOutlet, from: string | undefined) {
    this.#session = session
    this.#exchange = session.exchange
    this.#outlet = outlet
    this.#from = from
    const positions = new Map(from === undefined || this.#isOnly ? [] : readPositions(from))
    const isOwn = positions.delete(streamKey)
    this.#resumed = isOwn ? undefined : [...positions.keys()][0]
    this.#positions = positions
  }

  get #isOnly(): boolean {
    return this.#exchange.backend.targets.length === 1
  }

  /** Asks all servers; resolves with what is wrong with each, or undefined. */
  open(): Promise<Outcome[]> {
    this.#endLooking = this.#exchange.hub.onChange(() => this.#onChange())
    const wanted = this.#exchange.backend.targets.filter(
      ({ target }) => this.#resumed === undefined || target.name === this.#resumed,
    )
    return Promise.all(wanted.map((entry) => this.#open(entry)))
  }

  /** Asks a server for its stream; gives what is wrong, once it is known. */
  async #open(entry: McpTargetEntry): Promise<Outcome> {
    const { name } = entry.target
    const stream = this.#streams.get(name) ?? {
      flow: undefined,
      retry: undefined,
      retryMs: firstRetryMs,
      isGone: false,
    }
    this.#streams.set(name, stream)
    try {
      await this.#session.use(entry, (transport) => this.#listen(entry, transport, stream))
      return undefined
    } catch (thrown) {
      if (thrown instanceof SessionEnded) return thrown
      const failure = toFailure(thrown)
      // Who has no stream is not asked again.
      if (failure.answer?.status !== 405) this.#again(entry, stream)
      return failure
    }
  }

  /** Resolves when the stream has begun, rejects where it does not. */
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
        stream.retryMs = firstRetryMs
        this.#outlet.open()
        resolve()
      },
      onMessage: (message: McpMessage, mark: EventMark | undefined) => {
        const text = messageForClient(this.#session, entry, message)
        if (text === undefined) return
        this.#outlet.send(text, this.#markOf(name, mark))
        this.#slowDown(stream)
      },
      onEvent: (event: McpEvent) => {
        const { id, retry } = event
        if (id === undefined && retry === undefined) return
        const mark = this.#markOf(name, { id, retry })
        this.#outlet.sendEvent(eventText({ ...event, id: mark?.id }))
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

  /** With the last event of every server, so that each can go on where it was. */
  #markOf(target: string, mark: EventMark | undefined): EventMark | undefined {
    if (mark?.id === undefined || this.#isOnly) return mark
    this.#positions.set(target, mark.id)
    const own = this.#resumed === undefined ? [[streamKey, ''] as const] : []
    return { ...mark, id: writePositions([...own, ...this.#positions]) }
  }

  #slowDown({ flow }: ServerStream): void {
    if (flow === undefined || !this.#outlet.isSlow) return
    flow.pause()
    this.#outlet.onDrain(() => flow.resume())
  }

  /** A server has ended its stream: the client may come back, or we go back for it. */
  #ended(entry: McpTargetEntry, stream: ServerStream): void {
    stream.flow = undefined
    if (stream.isGone) return
    if (this.#isOnly || this.#resumed !== undefined) this.#outlet.end()
    else this.#again(entry, stream)
  }

  #again(entry: McpTargetEntry, stream: ServerStream): void {
    if (stream.isGone || this.#isOnly) return
    stream.retry = setTimeout(() => {
      if (!stream.isGone) void this.#open(entry).then((one) => this.#onRetried(one))
    }, stream.retryMs)
    stream.retry.unref()
    stream.retryMs = Math.min(stream.retryMs * 2, longestRetryMs)
  }

  #onRetried(failure: Outcome): void {
    if (failure instanceof SessionEnded) this.#outlet.end()
  }

  /** Targets have come or gone: their lists are other ones now. */
  #onChange(): void {
    if (this.#resumed !== undefined) return
    const { hub, name } = this.#exchange
    const found = hub.backends.find(name)
    if (found === undefined) {
      this.#outlet.end()
      return
    }
    const now = new Set(found.targets.map(({ target }) => target.name))
    const gone = [...this.#streams.keys()].filter((name) => !now.has(name))
    const fresh = found.targets.filter(({ target }) => !this.#streams.has(target.name))
    if (gone.length + fresh.length === 0) return
    for (const name of gone) this.#drop(name)
    for (const entry of fresh) void this.#open(entry).then((one) => this.#onRetried(one))
    for (const text of lists) this.#outlet.send(text)
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
    this.#endLooking?.()
    for (const name of [...this.#streams.keys()]) this.#drop(name)
  }
}
