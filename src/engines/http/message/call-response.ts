import type { BodySource } from '../bytes/body-sink.ts'
import type { HeadReader } from './head-reader.ts'
import { MessageBody } from './message-body.ts'
import { ResponseHeadView } from './response-head.ts'

const mostIdle = 256

/** Head and body of the response to a call. They are large, so that calls use them one after the other. */
export class CallResponse implements BodySource {
  readonly head = new ResponseHeadView()
  readonly body: MessageBody
  /** The call that uses this object. */
  call: BodySource | undefined

  constructor(reader: HeadReader) {
    this.body = new MessageBody(reader, this)
  }

  resumeBody(): void {
    this.call?.resumeBody()
  }

  /** Releases the bytes of the response. */
  clear(): void {
    this.call = undefined
    this.head.release()
    this.body.start('none', 0, false)
  }
}

/** Responses that another call can use. */
export class CallResponses {
  readonly #reader: HeadReader
  readonly #idle: CallResponse[] = []

  constructor(reader: HeadReader) {
    this.#reader = reader
  }

  take(call: BodySource): CallResponse {
    const response = this.#idle.pop() ?? new CallResponse(this.#reader)
    response.call = call
    return response
  }

  /** Called when nothing refers to the response any more. */
  keep(response: CallResponse): void {
    response.clear()
    if (this.#idle.length < mostIdle) this.#idle.push(response)
  }
}
