/** Requests that the gateway makes itself, such as those of policies. */
import type { GatewayError } from '../../errors/index.ts'
import type { HeaderFields } from '../../exchange/exchange.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'

export interface CallRequest extends ConnectOptions {
  readonly address: UpstreamAddress
  /** Other servers, tried in order if no connection to the first can be made. */
  readonly others?: readonly UpstreamAddress[]
  /** As HTTP/1.1 has it, with its empty line; a body has a length there, or HTTP/2 ends it. */
  readonly head: string
  readonly body: Uint8Array | undefined
  /** The connection is made to another address of the name than the one that was asked for. */
  readonly onAlternateAddress?: (address: UpstreamAddress) => void
  /** To ask twice would do harm: it is not sent again once a server may have seen it. */
  readonly isOnce?: boolean
  /** More of the body is written later. */
  readonly isOpen?: boolean
  /** Milliseconds for the whole answer; 0 = none. */
  readonly timeoutMs: number
}

/** Called for what becomes of a call; not called again after `onEnd` or `onFailure`. */
export interface CallListener {
  /** The fields are readable during the call only. */
  onHead(status: number, headers: HeaderFields): void
  /** A piece of the body, of the listener's own. */
  onBytes(bytes: Uint8Array): void
  /** The response is complete; field lines came behind it. */
  onEnd(trailers?: string): void
  onFailure(error: GatewayError): void
  /** What was written has left; for those who write. */
  onDrain?(): void
}

interface Call {
  /** No bytes come before `resume`, but what is under way. */
  pause(): void
  resume(): void
  /** Gives the call up; the listener is not called again. */
  close(): void
}

/** A call to whose request more may be said. */
export interface OpenCall extends Call {
  /** Writes bytes that must not be changed afterwards. Returns false if the upstream is slow. */
  write(bytes: Uint8Array): boolean
  end(): void
  /** Fails the call after so many milliseconds; 0 = never. Moves an earlier limit. */
  limit(ms: number): void
}
