/**
 * The seam between whoever publishes desired state and a proxy. Types only: the in-process channel
 * implements it in the control plane's own process, a stream from a controller elsewhere.
 */
import type { ResourceKey } from '../model/resources.ts'

/** A `sluice.resource.v1.Delta` message in memory that all threads share; never written again. */
export interface ConfigUpdate {
  readonly sequence: number
  readonly bytes: Uint8Array<SharedArrayBuffer>
  /**
   * A change set to put in force before `bytes`, in a full state: the last good versions of what
   * `bytes` has newer ones of that may be refused.
   */
  readonly base?: Uint8Array<SharedArrayBuffer>
}

/** A resource that a proxy does not have in force. */
export interface Rejection {
  readonly key: ResourceKey
  /** Code of the error catalogue. */
  readonly code: string
  /** For people; never a value. */
  readonly message: string
}

export interface ConfigChannel {
  /**
   * Calls `receive` with the full state (at once where something has been published), then with
   * every change set in order. Returns the end of the subscription.
   */
  subscribe(receive: (update: ConfigUpdate) => void): () => void
  /** Everything up to `sequence` is in force in the proxy, except what it rejects. */
  ack(proxy: string, sequence: number): void
  /** The proxy cannot put one resource in force; `sequence` is what it had received. */
  reject(proxy: string, sequence: number, rejection: Rejection): void
  /** A rejected resource is in force after all, or is no longer wanted. */
  recover(proxy: string, sequence: number, key: ResourceKey): void
}
