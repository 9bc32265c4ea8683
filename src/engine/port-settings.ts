import type { PortChange } from './contracts/engine.ts'
import type { EngineLimits } from './limits/engine-limits.ts'
import { defaultKeepalive } from './sockets/tcp-keepalive.ts'

/**
 * Settings of one port. Its connections share the limits, so that a change reaches those that are
 * open as well; what a connection has told its peer (windows, frames) it keeps, which is why the
 * limits of HTTP/2 are replaced as a whole.
 */
export class PortSettings {
  readonly limits: EngineLimits
  keepalive = defaultKeepalive
  readonly #defaults: EngineLimits

  constructor(defaults: EngineLimits) {
    this.#defaults = defaults
    this.limits = { ...defaults }
  }

  change({ limits, keepalive = defaultKeepalive }: PortChange): void {
    Object.assign(this.limits, this.#defaults, limits)
    this.keepalive = keepalive
  }
}
