/** `subscriptions/listen`: one stream with the change notifications of all targets. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import {
  acknowledgement,
  allListsChanged,
  type ChangeFilter,
  isAcknowledgement,
  isEmpty,
  joinFilters,
  readFilter,
  subscriptionEnd,
  wants,
  withFilter,
} from '../../eras/subscriptions.ts'
import { member, textOf } from '../../json/node.ts'
import { codes } from '../../json-rpc.ts'
import {
  type McpMessage,
  type McpNotification,
  type McpRequest,
  responseTo,
} from '../../message.ts'
import { clientUri, targetOfUri } from '../../naming.ts'
import { clientMessage } from '../../results.ts'
import { MessageStream } from '../exchange/message-stream.ts'
import { jsonRefusal, verdictOf } from '../exchange/refusals.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import { refusedWith, TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Flow, OnAbandon, Transport } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { itemFilter } from './item-filter.ts'
import { RetryTimer } from './retry-timer.ts'
import { noteListChange } from './server-messages.ts'

/** Maximum time for a target to acknowledge. */
const acknowledgeMs = 10_000

export function serveListen(
  upstreams: Upstreams,
  request: McpRequest,
  onAbandon: OnAbandon,
): RespondVerdict | Promise<RespondVerdict | undefined> {
  const { exchange } = upstreams
  const filter = readFilter(request)
  if (typeof filter === 'string') {
    exchange.noteError(codes.invalidParams)
    return jsonRefusal(400, request.id, codes.invalidParams, filter)
  }
  const messageStream = new MessageStream(exchange)
  const subscription = new Subscription(upstreams, request, filter, messageStream)
  const { shared } = exchange
  const removeStop = shared.stops.add(() => subscription.finish())
  onAbandon(() => {
    removeStop()
    subscription.close()
    messageStream.end()
  })
  subscription.open().catch((thrown) => messageStream.fail(thrown))
  return messageStream.result
}

/** The stream of one target. It may be closed until the next attempt to open it. */
interface TargetStream {
  readonly entry: McpTargetEntry
  /** The subscriptions that are requested from the target, with its own URIs. */
  readonly filter: ChangeFilter
  flow?: Flow | undefined
  readonly retry: RetryTimer
  isGone: boolean
}

class Subscription {
  readonly #upstreams: Upstreams
  readonly #request: McpRequest
  readonly #filter: ChangeFilter
  readonly #messageStream: MessageStream
  readonly #isOnly: boolean
  readonly #streams = new Map<string, TargetStream>()
  #targets: readonly McpTargetEntry[] = []
  /** What was acknowledged to the client; undefined until then. */
  #honoured: ChangeFilter | undefined
  #stopWatching: (() => void) | undefined
  #isOver = false

  constructor(
    upstreams: Upstreams,
    request: McpRequest,
    filter: ChangeFilter,
    messageStream: MessageStream,
  ) {
    this.#upstreams = upstreams
    this.#request = request
    this.#filter = filter
    this.#messageStream = messageStream
    this.#isOnly = upstreams.exchange.only !== undefined
  }

  /** Opens the streams of all targets, and acknowledges what they honour. */
  async open(): Promise<void> {
    const { backend, shared } = this.#upstreams.exchange
    this.#stopWatching = shared.changes.add(() => this.#onChange())
    this.#targets = backend.targets
    const asked = backend.targets.flatMap((entry) => this.#streamOf(entry) ?? [])
    const outcomes = await Promise.all(asked.map((stream) => this.#begin(stream)))
    if (this.#isOver) return
    const honoured = outcomes.flatMap((one) => (one instanceof TargetFailure ? [] : [one]))
    const [failure] = outcomes.filter((one) => one instanceof TargetFailure)
    if (honoured.length === 0 && failure !== undefined) {
      this.#messageStream.respond(verdictOf(failure, this.#request.id))
      this.close()
      return
    }
    this.#honoured = joinFilters(this.#filter, honoured)
    this.#messageStream.send(acknowledgement(this.#request.id, this.#honoured))
    if (isEmpty(this.#honoured)) this.finish()
  }

  /** Returns the stream for what concerns the target; undefined if nothing does. */
  #streamOf(entry: McpTargetEntry): TargetStream | undefined {
    const { name } = entry.target
    const keeps = itemFilter(this.#upstreams.exchange, entry, {
      type: 'resource',
      name: this.#request.method,
    })
    const own = this.#filter.uris.flatMap((uri) => {
      if (this.#isOnly) return [uri]
      const parts = targetOfUri(uri)
      return parts?.target === name ? [parts.name] : []
    })
    const uris = keeps === undefined ? own : own.filter(keeps)
    const filter = { lists: this.#filter.lists, uris }
    if (isEmpty(filter)) return undefined
    const stream = { entry, filter, retry: new RetryTimer(), isGone: false }
    this.#streams.set(name, stream)
    return stream
  }

  /** Opens a stream. Resolves to what the target honours, in URIs for the client, or to its failure. */
  async #begin(stream: TargetStream): Promise<ChangeFilter | TargetFailure> {
    const { entry } = stream
    try {
      const found = await this.#upstreams.use(entry, (transport) => this.#listen(stream, transport))
      if (this.#isOnly) return found
      const { name } = entry.target
      return { lists: found.lists, uris: found.uris.map((uri) => clientUri(name, uri)) }
    } catch (thrown) {
      const failure = toFailure(thrown)
      // A server that refuses the method is not asked again.
      if (failure.httpResponse === undefined) this.#again(stream)
      return failure
    }
  }

  /** Resolves when the target has acknowledged; rejects if it does not. */
  #listen(stream: TargetStream, transport: Transport): Promise<ChangeFilter> {
    const { promise, resolve, reject } = Promise.withResolvers<ChangeFilter>()
    const fail = (failure: unknown) => {
      clearTimeout(timer)
      stream.flow?.close()
      reject(failure)
    }
    const timer = setTimeout(() => {
      fail(new TargetFailure('the server does not acknowledge the subscription'))
    }, acknowledgeMs)
    timer.unref()
    let isAcknowledged = false
    const ended = (failure: TargetFailure) => {
      if (isAcknowledged) this.#ended(stream)
      else fail(failure)
    }
    const listener: ResponseListener = {
      onMessage: (message) => {
        if (message.kind === 'response') this.#onResponse(stream, message, fail)
        else if (message.kind === 'notification' && isAcknowledgement(message)) {
          const honoured = readFilter(message)
          clearTimeout(timer)
          isAcknowledged = true
          resolve(typeof honoured === 'string' ? stream.filter : honoured)
        } else if (message.kind === 'notification') this.#relay(stream, message)
      },
      onEnd: () => ended(new TargetFailure('the server has ended the subscription')),
      onFailure: ended,
    }
    const text = withFilter(this.#request, stream.filter)
    const { method } = this.#request
    const begun = (flow: Flow) => {
      stream.flow = flow
      if (stream.isGone) flow.close()
    }
    try {
      const flow = transport.post({ text, method, isLong: true }, listener)
      if (flow instanceof Promise) flow.then(begun, fail)
      else begun(flow)
    } catch (thrown) {
      fail(thrown)
    }
    return promise
  }

  /** The response ends the subscription at the target. */
  #onResponse(
    stream: TargetStream,
    message: McpMessage,
    fail: (failure: TargetFailure) => void,
  ): void {
    if (message.kind !== 'response') return
    const response = responseTo(message, this.#request.id)
    if (response === undefined) return
    if (response.error !== undefined) {
      fail(refusedWith('the server refuses the subscription', 200, response.text))
    } else if (this.#isOnly && this.#honoured !== undefined) {
      stream.isGone = true
      this.finish()
    }
  }

  #relay(stream: TargetStream, message: McpNotification): void {
    const { entry } = stream
    noteListChange(this.#upstreams.exchange, entry, message.method)
    if (this.#honoured === undefined || !wants(this.#honoured, message.method)) return
    const { exchange } = this.#upstreams
    const uri = textOf(message.text, member(message.params, 'uri'))
    const keeps = itemFilter(exchange, entry, { type: 'resource', name: message.method })
    if (uri !== undefined && keeps?.(uri) === false) return
    const { name } = entry.target
    this.#messageStream.send(this.#isOnly ? message.text : clientMessage(name, message))
    this.#messageStream.slowDown(stream.flow)
  }

  /** Without its only target the subscription has ended; others are opened again. */
  #ended(stream: TargetStream): void {
    stream.flow = undefined
    if (stream.isGone) return
    if (this.#isOnly) this.#messageStream.end()
    else this.#again(stream)
  }

  #again(stream: TargetStream): void {
    if (stream.isGone || this.#isOnly) return
    stream.retry.schedule(() => {
      if (stream.isGone) return
      void this.#begin(stream).then((outcome) => {
        if (outcome instanceof TargetFailure || stream.isGone) return
        stream.retry.reset()
        this.#notifyAll()
      })
    })
  }

  /** Tells the client that lists may have changed while a target was not connected. */
  #notifyAll(): void {
    if (this.#honoured === undefined) return
    for (const text of allListsChanged(this.#request.id, this.#honoured))
      this.#messageStream.send(text)
  }

  /** Called after a change of the targets. */
  #onChange(): void {
    const { exchange } = this.#upstreams
    const targets = exchange.currentView?.backend.targets
    // Names change with the number of targets, so that the client must subscribe again.
    if (targets === undefined || (exchange.only !== undefined) !== this.#isOnly) {
      this.finish()
      return
    }
    const before = this.#targets
    this.#targets = targets
    const gone = before.filter((entry) => !targets.includes(entry))
    const fresh = targets.filter((entry) => !before.includes(entry))
    if (gone.length + fresh.length === 0) return
    if (this.#isOnly) {
      this.finish()
      return
    }
    for (const { target } of gone) this.#drop(this.#streams.get(target.name))
    for (const entry of fresh) {
      const stream = this.#streamOf(entry)
      if (stream !== undefined) void this.#begin(stream)
    }
    this.#notifyAll()
  }

  #drop(stream: TargetStream | undefined): void {
    if (stream === undefined) return
    this.#streams.delete(stream.entry.target.name)
    stream.isGone = true
    stream.retry.stop()
    stream.flow?.close()
  }

  /** Ends the subscription with a response, so that the client knows that nothing was lost. */
  finish(): void {
    if (this.#isOver) return
    const { id } = this.#request
    if (this.#honoured === undefined) {
      const message = 'the gateway is about to stop or to change its servers'
      this.#messageStream.respond(jsonRefusal(503, id, codes.internal, message))
    } else {
      this.#messageStream.send(subscriptionEnd(id))
      this.#messageStream.end()
    }
    this.close()
  }

  close(): void {
    this.#isOver = true
    this.#stopWatching?.()
    for (const stream of [...this.#streams.values()]) this.#drop(stream)
  }
}
