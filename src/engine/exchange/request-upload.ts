import type { DownstreamStream } from '../contracts/downstream.ts'
import type { UpstreamStream } from '../contracts/upstream.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'

/**
 * How long an upstream may leave an expectation of 100 (Continue) unanswered. Then the body is sent,
 * as RFC 9110 10.1.1 asks of clients: some servers never answer, and some clients wait for ever.
 */
const patienceMs = 3_000

/** The request that is sent, as far as this cares. */
interface UploadOwner {
  readonly request: RequestHeadView
  readonly requestBody: MessageBody
  readonly requestFraming: FramingFields
  readonly upgrade: string | undefined
  readonly client: DownstreamStream | undefined
  /** Counts requests of the same object. */
  readonly generation: number
  onUploadFailed(thrown: unknown): void
}

/**
 * Sends head and body of a request to an upstream. If the client waits for 100 (Continue), it is the
 * upstream that decides: the expectation goes on to it, and the client is asked for the body when the
 * upstream has asked for it, has been silent for too long, or the client has begun by itself.
 */
export class RequestUpload implements TimerOwner {
  readonly #timers: TimerWheel
  readonly #owner: UploadOwner
  readonly #timer = new Timer(this)
  /** The upstream that has to answer the expectation first. */
  #asked: UpstreamStream | undefined

  constructor(timers: TimerWheel, owner: UploadOwner) {
    this.#timers = timers
    this.#owner = owner
  }

  /** The link takes the request. */
  start(stream: UpstreamStream): void {
    const { request, requestFraming, upgrade, client } = this.#owner
    // A body that a policy has replaced is here already.
    const isReplaced = requestFraming === 'none' || typeof requestFraming === 'number'
    const asksFirst = client?.awaitsContinue === true && !isReplaced
    stream.sendRequest(request, requestFraming, upgrade, asksFirst)
    if (!asksFirst) {
      this.#send(stream)
      return
    }
    this.#asked = stream
    this.#timers.arm(this.#timer, patienceMs)
    stream.sink.flush()
  }

  /** The upstream or the client wants the body to be sent now. Returns false if it is under way. */
  proceed(): boolean {
    const stream = this.#asked
    if (stream === undefined) return false
    this.stop()
    this.#send(stream)
    return true
  }

  /**
   * The final response has begun before the body was asked for. A client may send it nevertheless,
   * unless it was refused; after a final response there is no 100 (Continue).
   */
  answered(status: number): void {
    const { client } = this.#owner
    if (this.#asked === undefined || client === undefined) return
    if (status >= 400) {
      this.stop()
      return
    }
    client.hasContinued = true
    this.proceed()
  }

  /** The upstream is not asked any more. */
  stop(): void {
    if (this.#asked === undefined) return
    this.#asked = undefined
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
