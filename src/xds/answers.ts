/** What the control plane hears of its proxies, wherever they run. */
import type { ResourceKey } from '../model/resources.ts'

/** What proxies answer. `sequence` is the log position of the configuration that they mean. */
export interface ChannelAnswers {
  /** A watermark: it rises, and is repeated if a rejection has gone and it has not risen. */
  onAck(proxy: string, sequence: number): void
  onReject(proxy: string, sequence: number, key: ResourceKey, code: string, message: string): void
  /** A resource that was rejected is in force, or has gone. */
  onRecover(proxy: string, sequence: number, key: ResourceKey): void
}

/** A proxy as it introduces itself. */
export interface ProxyPresence {
  /** `namespace/name`; absent where it serves every Gateway. */
  readonly gateway?: string
  /** Where it serves traffic. */
  readonly address?: string
  readonly version?: string
  /** Unique for this connection: what was said on another one does not count. */
  readonly stream?: string
}

/** The answers of proxies that come and go. */
export interface ProxyAnswers extends ChannelAnswers {
  connected(proxy: string, presence: ProxyPresence): void
  disconnected(proxy: string, reason: string): void
}
