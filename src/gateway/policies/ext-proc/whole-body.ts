import type { CommonResponse } from '../../../../proto/gen/called/ext_proc_pb.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { Body, BodyTransform } from '../../../ground/exchange/exchange.ts'
import type { MessageSide } from './message-side.ts'
import type { Processing } from './processing.ts'

interface WholeMessage {
  readonly side: MessageSide
  readonly body: Body
  readonly bufferLimit: number
  change(common: CommonResponse | undefined): void
}

/**
 * Sends a body in one piece. If `isPartial` is set, sends only the start of a large body. Resolves to true if the body
 * may have trailers that were not sent.
 */
export async function sendWhole(
  message: WholeMessage,
  processing: Processing,
  isPartial: boolean,
): Promise<boolean> {
  const { side, body, bufferLimit } = message
  const buffered = await body.buffer(bufferLimit)
  if (!buffered.complete && !isPartial) {
    const detail = `the body has more than ${bufferLimit} bytes, the limit of mode Buffered`
    throw new GatewayError(side.name === 'request' ? 'body_too_large' : 'ext_proc_failed', detail)
  }
  // The processor may have ended the stream while the body was read.
  processing.requireIntact()
  if (processing.isOver) return false
  const bytes = buffered.complete ? buffered.bytes : buffered.prefix
  const answered = side.wholeSent((common) => {
    const mutation = common?.bodyMutation?.mutation
    if (mutation?.case === 'streamedResponse') {
      throw new GatewayError('ext_proc_failed', 'it answered a whole body with streamed_response')
    }
    message.change(common)
    if (mutation?.case !== 'body' && mutation?.case !== 'clearBody') return
    const instead = mutation.case === 'body' ? mutation.value : new Uint8Array()
    if (buffered.complete) body.replace(instead)
    else body.through(new ReplacedPrefix(bytes.length, instead))
  })
  const hasTrailers = side.sendsTrailers && body.trailers !== ''
  processing.sendBody(side, bytes, buffered.complete && !hasTrailers)
  processing.onStateChange()
  await answered
  return hasTrailers || !buffered.complete
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
