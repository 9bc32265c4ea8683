import type { EngineLimits } from '../limits/engine-limits.ts'
import type { PortChange } from '../limits/port-change.ts'
import { defaultKeepalive } from './tcp-keepalive.ts'

/**
 * Settings of one port. Its connections share the object `limits`, so that changes reach open ones.
 * The limits of HTTP/2 are replaced as an object, because a connection keeps those that it has
 * announced to its peer.
 */
export class PortSettings {
  readonly limits: EngineLimits
  keepalive = defaultKeepalive
  proxyProtocol: PortChange['proxyProtocol']
  refusal: PortChange['refusal']
  readonly #defaults: EngineLimits

  constructor(defaults: EngineLimits) {
    this.#defaults = defaults
    this.limits = { ...defaults }
  }

  change({ limits, keepalive = defaultKeepalive, proxyProtocol, refusal }: PortChange): void {
    Object.assign(this.limits, this.#defaults, limits)
    this.keepalive = keepalive
    this.proxyProtocol = proxyProtocol
    this.refusal = refusal
  }
}
