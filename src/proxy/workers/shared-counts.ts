/** What all workers of a proxy count together. */
import {
  type ConnectionCounts,
  createConnectionCounts,
  forgetConnections,
} from '../../engine/sockets/connection-cap.ts'
import { createRequestCounts, forgetRequests, type RequestCounts } from '../upstream/request-cap.ts'

export interface SharedCounts {
  /** Client connections that are open. */
  readonly connections: ConnectionCounts
  /** Requests to addresses of backends; absent where they have no limit. */
  readonly requests?: RequestCounts
}

export function createSharedCounts(workers: number, limitsRequests: boolean): SharedCounts {
  const connections = createConnectionCounts()
  return { connections, ...(limitsRequests && { requests: createRequestCounts(workers) }) }
}

/** The worker at this place has died, with what it held. */
export function forgetWorker({ connections, requests }: SharedCounts, worker: number): void {
  forgetConnections(connections, worker)
  if (requests !== undefined) forgetRequests(requests, worker)
}
