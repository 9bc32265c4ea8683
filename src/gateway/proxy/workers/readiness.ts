/**
 * Readiness of the proxy, computed from the states of the workers. At first the proxy is not ready until
 * every port is served. Later it stays ready while any port is served, so that the loss of one port does not
 * take the others out of service. The response names the missing ports.
 */
import type { PortName, WorkerState } from './worker-messages.ts'

interface WorkerView {
  readonly index: number
  /** State of the worker; undefined while the thread starts. */
  readonly state: WorkerState | undefined
  readonly isAlive: boolean
}

/** Returns what the proxy still waits for before it is ready for the first time. */
export function startupPending(workers: readonly WorkerView[]): string[] {
  if (workers.length === 0) return ['workers']
  const waiting = workers
    .filter(({ state }) => state === undefined || state.sequence < 0)
    .map(({ index }) => `configuration of worker ${index}`)
  return [...waiting, ...unservedPorts(workers)]
}

/** Returns the ports that some worker could not bind, as `port 80` or `port 53/udp`. */
export function unservedPorts(workers: readonly WorkerView[]): string[] {
  const unbound = new Set<PortName>(workers.flatMap(({ state }) => state?.unbound ?? []))
  return [...unbound].map((port) => `port ${port}`)
}

/** Returns why a proxy that was ready can no longer serve anything; empty if it can. */
export function laterPending(workers: readonly WorkerView[]): string[] {
  if (!workers.some(({ isAlive }) => isAlive)) return ['workers']
  const serves = workers.some(({ state }) => state === undefined || state.bound.length > 0)
  return serves ? [] : unservedPorts(workers)
}
