/** Counts that all workers of a proxy share. */
import {
  type ConnectionCounts,
  createConnectionCounts,
  forgetConnections,
} from '../../engine/sockets/connection-cap.ts'
import { createRequestCounts, forgetRequests, type RequestCounts } from '../upstream/request-cap.ts'

export interface SharedCounts {
  /** Open client connections. */
  readonly connections: ConnectionCounts
  /** Requests to addresses of backends; undefined if they are not limited. */
  readonly requests?: RequestCounts
}

export function createSharedCounts(workers: number, limitsRequests: boolean): SharedCounts {
  const requests = limitsRequests ? createRequestCounts(workers) : undefined
  return { connections: createConnectionCounts(), requests }
}

/** Subtracts the counts of a worker that has died. */
export function forgetWorker({ connections, requests }: SharedCounts, worker: number): void {
  forgetConnections(connections, worker)
  if (requests !== undefined) forgetRequests(requests, worker)
}
