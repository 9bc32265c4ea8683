/** InferencePools (Gateway API Inference Extension) and their Pods, in the form that proxies receive. */
import type { ServiceTarget } from './destinations.ts'
import type { ObjectName } from './names.ts'

/** The service that chooses an endpoint for each request. */
export interface EndpointPicker {
  readonly target: ServiceTarget
  /** What happens to requests if the picker cannot be reached. */
  readonly failureMode: 'FailOpen' | 'FailClose'
}

/** An InferencePool. Key `pool/<ns>/<name>`. */
export interface PoolResource extends ObjectName {
  readonly type: 'pool'
  readonly key: string
  /** 1 to 8 ports from 1 to 65535. Each address of a Pod with each of these ports is an endpoint. */
  readonly targetPorts: readonly number[]
  /** Either `http` or `kubernetes.io/h2c`. */
  readonly appProtocol: string
  /** Omitted if the pool is unusable. */
  readonly picker?: EndpointPicker
  /** Set if the pool cannot be served. Requests to it fail with status 500. */
  readonly unusable?: string
}

/** A Pod that at least one pool selects. Key `pod/<ns>/<name>`. */
export interface PodResource extends ObjectName {
  readonly type: 'pod'
  readonly key: string
  /** Names of the pools, which are in the same namespace. Sorted; at least one. */
  readonly pools: readonly string[]
  /** IPv4 or IPv6 address, without brackets. */
  readonly address: string
  readonly ready: boolean
  /** Set if the Pod is terminating but still serves. It is used while the pool has no ready Pod. */
  readonly serving?: boolean
}
