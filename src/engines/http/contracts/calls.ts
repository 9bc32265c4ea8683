/** Requests that the gateway makes itself, such as those of policies. */
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { HeaderFields } from '../../../ground/exchange/exchange.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'

export interface CallRequest extends ConnectOptions {
  readonly address: UpstreamAddress
  /** Addresses to try in order if no connection to the first one can be made. */
  readonly fallbackAddresses?: readonly UpstreamAddress[]
  /** The head in the form of HTTP/1.1, with its empty line. */
  readonly head: string
  readonly body: Uint8Array | undefined
  /** Called if the connection was made to a different address of the same host name. */
  readonly onAlternateAddress?: (address: UpstreamAddress) => void
  /** Whether the request must not be resent once a server may have seen it (not idempotent). */
  readonly isOnce?: boolean
  /** Whether the head announces chunked coding. If not, it states the length, or HTTP/2 ends the body. */
  readonly isChunked?: boolean
  /** Whether more of the body is written later. */
  readonly isOpen?: boolean
  /** Whether an open request ends when its response ends, instead of being reset (HTTP/2). */
  readonly endsWithResponse?: boolean
  /** Milliseconds for the whole response; 0 means no limit. */
  readonly timeoutMs: number
}

/** Handles the response of a call; not called again after `onEnd` or `onFailure`. */
export interface CallListener {
  /** Called when the head has been read. The fields are readable only during this call. */
  onHead(status: number, headers: HeaderFields): void
  /** Called for each piece of the body, which the listener may keep. */
  onBytes(bytes: Uint8Array): void
  /** Called when the response is complete. `trailers` are the field lines of its trailer section. */
  onEnd(trailers?: string): void
  onFailure(error: GatewayError): void
  /** Called when everything that was written has been sent. */
  onDrain?(): void
}

interface Call {
  /** Pauses the response; bytes that were read before may still be delivered. */
  pause(): void
  resume(): void
  /** Abandons the call; the listener is not called again. */
  close(): void
}

/** A call whose request is still being written. */
export interface OpenCall extends Call {
  /** Writes bytes that must not be changed afterwards. Returns false if the upstream is slow. */
  write(bytes: Uint8Array): boolean
  end(): void
  /** Fails the call after `ms` milliseconds (0: never). Replaces an earlier limit. */
  limit(ms: number): void
}
