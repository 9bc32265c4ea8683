/**
 * The interface between the publisher of desired state and a proxy. It contains only types: the local
 * channel implements it within a process, the remote channel with a stream from a controller.
 */
import type { EndedEntry } from '../../ground/model/ended-sessions.ts'
import type { ResourceKey } from '../../ground/model/resources.ts'

/** A `sluice.resource.v1.Delta` message in shared memory of all threads; it is never modified. */
export interface ConfigUpdate {
  readonly sequence: number
  /** Position in the log of the controller; if omitted, `sequence` is that position. */
  readonly position?: number
  readonly bytes: Uint8Array<SharedArrayBuffer>
  /**
   * Set only with a full state: resources to apply before `bytes`. They are the last versions that the
   * proxy accepted of resources whose newer versions in `bytes` may be rejected.
   */
  readonly base?: Uint8Array<SharedArrayBuffer>
  /**
   * Set on the parts of the first state except the last: more resources follow. Until the last part is applied,
   * the proxy binds no port and acknowledges nothing. The sequence is 0 if the state was not complete yet: later
   * parts then remove what has changed, and send it again.
   */
  readonly isPart?: true
}

/** A resource that a proxy could not apply. */
export interface Rejection {
  readonly key: ResourceKey
  /** Error code from the error catalogue. */
  readonly code: string
  /** Explanation for users; it contains no values. */
  readonly message: string
}

export interface ConfigChannel {
  /**
   * Calls `receive` with the full state (immediately if one is published), then with every change set
   * in order. Returns a function that ends the subscription. `worker` is the number of the worker that subscribes,
   * which may get another state than other workers.
   */
  subscribe(receive: (update: ConfigUpdate) => void, worker?: number): () => void
  /**
   * Calls `receive` with all sessions and tokens that are refused, if there are any, then with further ones. Returns a
   * function that ends the subscription.
   */
  subscribeEnded?(receive: (entries: readonly EndedEntry[]) => void): () => void
  /** Reports that the proxy applied everything up to `sequence`, except rejected resources. */
  ack(proxy: string, sequence: number): void
  /** Reports that the proxy cannot apply a resource; `sequence` is the last one that it received. */
  reject(proxy: string, sequence: number, rejection: Rejection): void
  /** Reports that a rejected resource has been applied after all, or was removed. */
  recover(proxy: string, sequence: number, key: ResourceKey): void
}
