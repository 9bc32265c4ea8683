import type { MetricsSnapshot } from './metric-definitions.ts'

/** Memory and CPU time of this process. */
export function processMetrics(): MetricsSnapshot {
  const { user, system } = process.cpuUsage()
  return {
    process_resident_memory_bytes: [{ labels: [], values: [process.memoryUsage.rss()] }],
    process_cpu_seconds_total: [{ labels: [], values: [(user + system) / 1e6] }],
  }
}
