/** The stream of a session of the older transport, whichever thread has opened it. */
import type { ResponseListener } from '../target/response-reader.ts'

/** A request that waits for its response on the stream. */
export interface PendingResponse {
  readonly listener: ResponseListener
  /** Progress token of the request, as JSON. */
  readonly progressToken: string | undefined
}

/** The stream that carries all messages of one server in a session. */
export interface SseStream {
  /** Label of the connected endpoint. */
  readonly label: string | undefined
  /** Path and query that messages are posted to. */
  readonly messagePath: string
  /**
   * Passes the response to the request with this id to its listener. The request may be sent once this has
   * returned or resolved. Throws or rejects with a TargetFailure.
   */
  expect(id: string, pending: PendingResponse): void | Promise<void>
  forget(id: string): void
  /** Adds a listener for messages that belong to no request. Returns a function that removes it. */
  listen(listener: ResponseListener): () => void
  pause(): void
  resume(): void
}
