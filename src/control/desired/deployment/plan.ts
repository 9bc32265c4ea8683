/** What must be deployed for a Gateway, as far as the objects in the cluster determine it. */
import type { Overlays, ProxyParameters } from './parameters.ts'

export interface ProxyPort {
  readonly port: number
  readonly protocol: 'TCP' | 'UDP'
}

export interface ProxyPlan {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly className: string
  readonly ports: readonly ProxyPort[]
  /** The address that spec.addresses requests. */
  readonly address?: string
  /** Labels of spec.infrastructure. */
  readonly labels: Readonly<Record<string, string>>
  /** Annotations of spec.infrastructure. */
  readonly annotations: Readonly<Record<string, string>>
  readonly parameters: ProxyParameters
  readonly overlays: Overlays
}

/**
 * - `wanted`: the objects of the plan must exist.
 * - `held`: existing objects stay unchanged, because no new ones can be rendered.
 * - `none`: objects that this controller deployed must be deleted.
 */
export type Deployment =
  | { readonly state: 'wanted'; readonly plan: ProxyPlan }
  | { readonly state: 'held' }
  | { readonly state: 'none'; readonly uid: string }

/** Inputs of the deployment that do not come from objects in the cluster; the same for all Gateways. */
export interface ProxyEnvironment {
  /** Version of the controller. */
  readonly version: string
  /** Default parts of the image name, for parts that parameters do not set. */
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string }
  readonly xds: {
    /** Hostname of the controller, such as `sluice.sluice-system.svc.cluster.local`. */
    readonly host: string
    readonly port: number
    /** PEM CA certificates for the controller's certificate. If omitted, proxies connect without TLS. */
    readonly ca?: string
  }
  /** Servers where proxies keep grants of users. If omitted, each proxy has a file. */
  readonly grantStore?: string
}

/** A Kubernetes object to apply. */
export interface RenderedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly labels: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences: readonly object[]
  }
  readonly [field: string]: unknown
}

/** A placeholder to check whether a plan can be rendered; the environment has no effect on that. */
export const anyEnvironment: ProxyEnvironment = {
  version: '0.0.0',
  image: { registry: '', repository: 'proxy', tag: '0.0.0' },
  xds: { host: 'controller', port: 9978 },
}
