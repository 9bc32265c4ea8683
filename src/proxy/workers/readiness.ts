/**
 * What readiness says, from the states of the workers. Until everything is served for the first
 * time, whatever is missing holds readiness back. Later, a port that cannot be had must not take the
 * other ports out of service: readiness stays, and names it. Where no port is left that could be
 * served, nothing is ready.
 */
import type { PortName, WorkerState } from './worker-messages.ts'

interface WorkerView {
  readonly index: number
  /** Undefined while a thread starts. */
  readonly state: WorkerState | undefined
  readonly isAlive: boolean
}

/** What the first readiness waits for; empty when there is nothing. */
export function startupPending(workers: readonly WorkerView[]): string[] {
  if (workers.length === 0) return ['workers']
  const waiting = workers
    .filter(({ state }) => state === undefined || state.sequence < 0)
    .map(({ index }) => `configuration of worker ${index}`)
  return [...waiting, ...unservedPorts(workers)]
}

/** Ports that listeners want and that some worker could not bind, as `port 80` or `port 53/udp`. */
export function unservedPorts(workers: readonly WorkerView[]): string[] {
  const unbound = new Set<PortName>(workers.flatMap(({ state }) => state?.unbound ?? []))
  return [...unbound].map((port) => `port ${port}`)
}

/** What keeps a proxy from serving anything that was ready before. */
export function laterPending(workers: readonly WorkerView[]): string[] {
  if (!workers.some(({ isAlive }) => isAlive)) return ['workers']
  const serves = workers.some(({ state }) => state === undefined || state.bound.length > 0)
  return serves ? [] : unservedPorts(workers)
}
