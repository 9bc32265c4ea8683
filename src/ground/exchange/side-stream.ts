/** Side streams, into which bodies are diverted for services that may change them. */
import type { GatewayError } from '../errors/index.ts'

/** Receives a diverted body, for a service that may change it. Nothing is called after `end`. */
export interface SideStream {
  /** Receives a piece, which the side stream may keep. Returns false to get no more before `resume`. */
  push(bytes: Uint8Array): boolean
  /** Receives the last piece, which may be empty, and the trailer field lines. */
  end(bytes: Uint8Array, trailers: string): void
  /** Called when everything written to the return stream has been sent, so that there is room for more. */
  drained(): void
}

/** Accepts what replaces a diverted body. */
export interface ReturnStream {
  /** Sends bytes, which must not change afterwards. Returns false if they are queued for a slow receiver. */
  write(bytes: Uint8Array): boolean
  /** Completes the body, with trailer field lines if any. */
  end(trailers?: string): void
  /** Called when the side stream is ready for more of the body. Does nothing if no `push` returned false before. */
  resume(): void
  /** Fails the exchange with this error, because the rest of the body will not come. */
  abort(error: GatewayError): void
}
