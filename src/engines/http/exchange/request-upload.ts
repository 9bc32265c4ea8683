import type { DownstreamStream } from '../contracts/downstream.ts'
import type { UpstreamStream } from '../contracts/upstream.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'

/**
 * How long an upstream may leave the expectation of 100 (Continue) unanswered. Then the body is sent,
 * as RFC 9110 10.1.1 asks of clients: some servers never respond, and some clients wait forever.
 */
const patienceMs = 3_000

/** The request to send. */
interface UploadOwner {
  readonly request: RequestHeadView
  readonly requestBody: MessageBody
  readonly requestFraming: FramingFields
  readonly upgrade: string | undefined
  readonly client: DownstreamStream | undefined
  /** Incremented when the same object serves another request. */
  readonly generation: number
  onUploadFailed(thrown: unknown): void
}

/**
 * Sends head and body of a request to an upstream. If the client waits for 100 (Continue), the
 * expectation is forwarded. The body is sent when the upstream requests it or does not respond for too
 * long, or when the client starts to send without waiting.
 */
export class RequestUpload implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #owner: UploadOwner
  readonly #timer = new Timer(this)
  /** The upstream that has not responded to the expectation yet. */
  #askedUpstream: UpstreamStream | undefined

  constructor(timers: TimerWheel, owner: UploadOwner) {
    this.#timers = timers
    this.#owner = owner
  }

  /** Called when the stream is ready for the request. */
  start(stream: UpstreamStream): void {
    const { request, requestFraming, upgrade, client } = this.#owner
    // A body that a policy has replaced is complete already.
    const isReplaced = requestFraming === 'none' || typeof requestFraming === 'number'
    const asksFirst = client?.awaitsContinue === true && !isReplaced
    stream.sendRequest(request, requestFraming, upgrade, asksFirst)
    if (!asksFirst) {
      this.#send(stream)
      return
    }
    this.#askedUpstream = stream
    this.#timers.arm(this.#timer, patienceMs)
    stream.sink.flush()
  }

  /** Sends the body now, as the upstream or the client wants. Returns false if it is under way. */
  proceed(): boolean {
    const stream = this.#askedUpstream
    if (stream === undefined) return false
    this.stop()
    this.#send(stream)
    return true
  }

  /**
   * Called when the final response begins before the body was requested. The client may send the body
   * nevertheless, unless the status is an error; 100 (Continue) cannot follow a final response.
   */
  responded(status: number): void {
    const { client } = this.#owner
    if (this.#askedUpstream === undefined || client === undefined) return
    if (status >= 400) {
      this.stop()
      return
    }
    client.hasContinued = true
    this.proceed()
  }

  /** Stops waiting for a response to the expectation. */
  stop(): void {
    if (this.#askedUpstream === undefined) return
    this.#askedUpstream = undefined
    this.#timers.disarm(this.#timer)
  }

  onTimer(): void {
    this.proceed()
  }

  #send(stream: UpstreamStream): void {
    const owner = this.#owner
    const { generation } = owner
    try {
      const isChunked = owner.request.isSentChunked(owner.requestFraming) && !stream.framesBodies
      owner.requestBody.flow(stream.sink, isChunked, false)
    } catch (thrown) {
      if (generation === owner.generation) owner.onUploadFailed(thrown)
    }
  }
}
