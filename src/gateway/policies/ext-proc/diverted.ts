import type { Body } from '../../../ground/exchange/exchange.ts'
import type { ReturnStream, SideStream } from '../../../ground/exchange/side-stream.ts'

/**
 * Diverts a body into a stream that may write to the return stream at once. Bytes that have already arrived are passed
 * to the stream only after `open` was called with the return stream.
 */
export function divertInto(
  body: Body,
  stream: SideStream,
  open: (returned: ReturnStream | undefined) => void,
): void {
  const delayed = new DelayedStream(stream)
  const returned = body.divert?.(delayed)
  open(returned)
  delayed.begin()
}

class DelayedStream implements SideStream {
  readonly #stream: SideStream
  #hasBegun = false
  readonly #pieces: Uint8Array[] = []
  #end: readonly [bytes: Uint8Array, trailers: string] | undefined

  constructor(stream: SideStream) {
    this.#stream = stream
  }

  push(bytes: Uint8Array): boolean {
    if (!this.#hasBegun) {
      this.#pieces.push(bytes)
      return true
    }
    return this.#stream.push(bytes)
  }

  end(bytes: Uint8Array, trailers: string): void {
    if (this.#hasBegun) this.#stream.end(bytes, trailers)
    else this.#end = [bytes, trailers]
  }

  drained(): void {
    this.#stream.drained()
  }

  begin(): void {
    this.#hasBegun = true
    for (const piece of this.#pieces.splice(0)) this.#stream.push(piece)
    if (this.#end !== undefined) this.#stream.end(...this.#end)
  }
}
