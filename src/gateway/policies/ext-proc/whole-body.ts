import { GatewayError } from '../../../ground/errors/index.ts'
import type { BodyTransform, Exchange } from '../../../ground/exchange/exchange.ts'
import { changeResponse } from './fields.ts'
import type { Processing } from './processing.ts'

/** Sends the response body in one piece. If `isPartial` is set, sends only the start of a large body. */
export async function sendWhole(
  { response, responseBody, bufferLimit }: Exchange,
  processing: Processing,
  isPartial: boolean,
): Promise<void> {
  if (response === undefined || responseBody === undefined) return
  const body = await responseBody.buffer(bufferLimit)
  if (!body.complete && !isPartial) {
    throw new GatewayError('ext_proc_failed', `a body of more than ${bufferLimit} bytes to buffer`)
  }
  // The processor may have ended the stream while the body was read.
  processing.requireIntact()
  if (processing.isOver) return
  const bytes = body.complete ? body.bytes : body.prefix
  const side = processing.response
  const answered = side.wholeSent((common) => {
    const mutation = common?.bodyMutation?.mutation
    if (mutation?.case === 'streamedResponse') {
      throw new GatewayError('ext_proc_failed', 'it answered a whole body with streamed_response')
    }
    changeResponse(response, common?.headerMutation)
    if (mutation?.case !== 'body' && mutation?.case !== 'clearBody') return
    const instead = mutation.case === 'body' ? mutation.value : new Uint8Array()
    if (body.complete) responseBody.replace(instead)
    else responseBody.through(new ReplacedPrefix(bytes.length, instead))
  })
  processing.sendBody(side, bytes, body.complete)
  processing.onStateChange()
  await answered
}

/** Replaces the first `length` bytes of a body. */
class ReplacedPrefix implements BodyTransform {
  #left: number
  #instead: Uint8Array | undefined

  constructor(length: number, instead: Uint8Array) {
    this.#left = length
    this.#instead = instead
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    if (this.#instead !== undefined) emit(this.#instead)
    this.#instead = undefined
    const dropped = Math.min(this.#left, chunk.length)
    this.#left -= dropped
    if (dropped < chunk.length) emit(chunk.subarray(dropped))
  }

  end(emit: (bytes: Uint8Array) => void): void {
    if (this.#instead !== undefined) emit(this.#instead)
    this.#instead = undefined
  }
}
