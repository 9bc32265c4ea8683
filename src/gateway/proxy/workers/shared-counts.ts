/** Counts and locks that all workers of a proxy share. */
import {
  type ConnectionCounts,
  createConnectionCounts,
  forgetConnections,
} from '../../../engines/http/sockets/connection-cap.ts'
import { createOutputLock, forgetOutput, type OutputLockCells } from '../telemetry/output-lock.ts'
import { createCircuitCounts } from '../upstream/circuits.ts'
import { createHealthMemory, type HealthMemory } from '../upstream/health-slots.ts'
import { createRequestCounts, forgetRequests, type RequestCounts } from '../upstream/request-cap.ts'

export interface SharedCounts {
  /** Open client connections. */
  readonly connections: ConnectionCounts
  /** Requests to addresses of backends; undefined if they are not limited. */
  readonly requests?: RequestCounts
  /** Requests to backends with a circuit breaker. */
  readonly circuits: RequestCounts
  /** Results of active health checks. */
  readonly health: HealthMemory
  /** The lock of the access log. */
  readonly output: OutputLockCells
}

export function createSharedCounts(workers: number, limitsRequests: boolean): SharedCounts {
  const requests = limitsRequests ? createRequestCounts(workers) : undefined
  return {
    connections: createConnectionCounts(),
    requests,
    circuits: createCircuitCounts(workers),
    health: createHealthMemory(),
    output: createOutputLock(),
  }
}

/** Subtracts the counts of a worker that has died, and releases its lock. */
export function forgetWorker(
  { connections, requests, circuits, output }: SharedCounts,
  worker: number,
): void {
  forgetOutput(output, worker)
  forgetConnections(connections, worker)
  if (requests !== undefined) forgetRequests(requests, worker)
  forgetRequests(circuits, worker)
}
