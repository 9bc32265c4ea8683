/** The input and the result of the simulation of a request. */
import { bareHost } from '../../ground/base/bare-host.ts'
import type { RecordedDecision } from '../decisions/record.ts'

/** A header field. Without `value`, the value is unknown, except for its keyed digest if there is one. */
export interface SimulatedHeader {
  readonly name: string
  readonly value?: string
  /** First 8 bytes of the keyed digest of the value, in hex. */
  readonly digest?: string
}

export interface SimulatedRequest {
  readonly method: string
  /** Host with an optional port. */
  readonly host: string
  /** Path without the query. */
  readonly path: string
  readonly query?: string
  readonly scheme: 'http' | 'https'
  /** Listener port. If omitted, the only listener port for the scheme is used. */
  readonly port?: number
  /** Address of the client; unknown if omitted. */
  readonly source?: { readonly address: string; readonly port: number }
  /** `HTTP/1.1` if omitted. */
  readonly protocol?: string
  readonly headers: readonly SimulatedHeader[]
  /** Why `headers` may be incomplete. Not set if the list is complete. */
  readonly headersProblem?: string
  /** The body. If omitted, it is unknown, unless the head shows that there is none. */
  readonly body?: Uint8Array
  /** Unix time in milliseconds. If omitted, the time of the simulation is used. */
  readonly timeMs?: number
  /** What the proxy decided about this request. */
  readonly recorded?: RecordedDecision
}

/** How a verdict was found: by running the step, from the record, or from an assumption of the user. */
export type Basis = 'computed' | 'recorded' | 'assumed'

export interface StepObject {
  /** `Kind namespace/name`. */
  readonly object: string
  /** Not set if unknown. */
  readonly generation?: number
}

/** `object` and `generation` are those of the most specific policy, as in explanations of recorded decisions. */
export interface SimulatedStep extends Partial<StepObject> {
  /** Such as `traffic.authorization`. */
  readonly step: string
  /** All policies that the step comes from, the least specific first. */
  readonly from: readonly StepObject[]
  readonly verdict: 'pass' | 'answer' | 'undecided'
  readonly basis: Basis
  /** What decided, or why the step is undecided. */
  readonly reason?: string
  /** Status of the response. */
  readonly status?: number
  /** Digest of the compiled policies. Steps with the same digest decide alike. */
  readonly config: string
}

export interface SimulatedOutcome {
  readonly verdict: 'forward' | 'answer' | 'undecided'
  /** Status of the response. For a forwarded request, that of the record; not set if it is unknown. */
  readonly status?: number
  /** Whether the response says that something was refused, whatever its status is. */
  readonly isRefusal?: true
  /** If the backend has judged what the request has used: identifies the settings that were not judged. */
  readonly otherSettings?: string
  /** What decided, or why the request is undecided. */
  readonly reason?: string
  readonly gateway?: string
  readonly listener?: string
  readonly route?: string
  /** Index of the rule in its route, from 0. */
  readonly rule?: number
  readonly backend?: string
  readonly provider?: string
}

export interface Simulation {
  readonly request: Pick<
    SimulatedRequest,
    'method' | 'host' | 'path' | 'query' | 'scheme' | 'port'
  > & { readonly id?: string }
  readonly steps: readonly SimulatedStep[]
  readonly outcome: SimulatedOutcome
  /** What could not be decided, and why; empty if everything was. */
  readonly undecided: readonly string[]
}

/** Returns the request of a record. */
export function requestOf(decision: RecordedDecision): SimulatedRequest {
  const { request, time } = decision
  const { method, host, path, query, scheme, port, protocol, headers, source } = request
  return {
    method,
    host,
    path,
    ...(query !== undefined && { query }),
    scheme,
    port,
    source: peerOf(source),
    protocol,
    headers,
    timeMs: Date.parse(time),
    recorded: decision,
  }
}

/** Reads `address:port`, with an IPv6 address in brackets. */
function peerOf(text: string): { address: string; port: number } {
  const colon = text.lastIndexOf(':')
  const address = bareHost(text.slice(0, colon))
  return { address, port: Number(text.slice(colon + 1)) }
}
