import type { MetricsSnapshot, Series } from '../telemetry/metric-definitions.ts'

/** Maximum number of backends with their own series. */
const maxBackends = 1_000
/** Label of all further backends. */
const overflow = '_OTHER'

/** Counts of active health checks, by backend. */
export class CheckCounts {
  readonly #probes = new Map<string, { ok: number; failed: number }>()

  count(backend: string, isOk: boolean): void {
    const name = this.#nameOf(backend)
    let counts = this.#probes.get(name)
    if (counts === undefined) {
      counts = { ok: 0, failed: 0 }
      this.#probes.set(name, counts)
    }
    counts[isOk ? 'ok' : 'failed']++
  }

  #nameOf(backend: string): string {
    return this.#probes.has(backend) || this.#probes.size < maxBackends ? backend : overflow
  }

  /** `current` has the unhealthy endpoints that this worker reports. */
  snapshot(
    current: readonly { readonly backend: string; readonly unhealthy: number }[],
  ): MetricsSnapshot {
    const unhealthy = new Map<string, number>()
    for (const one of current) {
      const name = this.#nameOf(one.backend)
      unhealthy.set(name, (unhealthy.get(name) ?? 0) + one.unhealthy)
    }
    return {
      upstream_health_checks_total: [...this.#probes].flatMap(
        ([backend, { ok, failed }]): Series[] => [
          { labels: [backend, 'ok'], values: [ok] },
          { labels: [backend, 'failed'], values: [failed] },
        ],
      ),
      upstream_unhealthy_endpoints: [...unhealthy].map(([backend, count]) => ({
        labels: [backend],
        values: [count],
      })),
    }
  }
}
