/** Pods that serve a model (Gateway API Inference Extension), as proxies receive them. */
import type { ObjectRef } from './names.ts'

type PickerFailureMode = 'FailOpen' | 'FailClose'

/** Who chooses an endpoint for each request. */
export interface EndpointPicker {
  readonly target: {
    readonly type: 'service'
    readonly namespace: string
    readonly name: string
    readonly port: number
  }
  /** What happens while it cannot be asked. */
  readonly failureMode: PickerFailureMode
}

/** An InferencePool. Key `pool/<ns>/<name>`. */
export interface PoolResource {
  readonly type: 'pool'
  readonly key: string
  readonly namespace: string
  readonly name: string
  /** 1..8, each 1..65535: every one of them, with the address of a Pod, is an endpoint. */
  readonly targetPorts: readonly number[]
  /** `http` or `kubernetes.io/h2c`. */
  readonly appProtocol: string
  /** Absent where the pool is unusable. */
  readonly picker?: EndpointPicker
  /** Set where the pool cannot be served: what is sent to it is answered 500. */
  readonly unusable?: string
}

/** A Pod that pools select. Key `pod/<ns>/<name>`. */
export interface PodResource {
  readonly type: 'pod'
  readonly key: string
  readonly namespace: string
  readonly name: string
  /** Names of the pools, in the same namespace; sorted, at least one. */
  readonly pools: readonly string[]
  /** IPv4 or IPv6, without brackets. */
  readonly address: string
  readonly ready: boolean
}

/** Kinds of objects that a reference of a route may lead to, by the type of the target. */
export const targetKinds = {
  service: 'Service',
  backend: 'GatewayBackend',
  pool: 'InferencePool',
} as const

/** The object that a reference leads to. */
export function targetObject({
  type,
  namespace,
  name,
}: {
  readonly type: keyof typeof targetKinds
  readonly namespace: string
  readonly name: string
}): ObjectRef {
  return { kind: targetKinds[type], namespace, name }
}
