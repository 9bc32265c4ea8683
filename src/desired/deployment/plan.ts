/** What is to be deployed for a Gateway, as far as the objects of the cluster decide it. */
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
  /** The address that spec.addresses asks for. */
  readonly address?: string
  /** Of spec.infrastructure. */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly parameters: ProxyParameters
  readonly overlays: Overlays
}

/**
 * - `wanted`: these objects are to be there.
 * - `held`: what is there stays as it is, since what is asked for cannot be had.
 * - `none`: nothing of ours is to be there.
 */
export type Deployment =
  | { readonly state: 'wanted'; readonly plan: ProxyPlan }
  | { readonly state: 'held' }
  | { readonly state: 'none'; readonly uid: string }

/** What a controller adds that is no object of the cluster; the same for all Gateways. */
export interface ProxyEnvironment {
  /** Version of the controller. */
  readonly version: string
  /** Parts of the image that parameters do not set. */
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string }
  readonly xds: {
    /** Such as `sluice.sluice-system.svc.cluster.local`. */
    readonly host: string
    readonly port: number
    /** Authorities of the controller's certificate (PEM); plaintext where absent. */
    readonly ca?: string
  }
}

/** An object of Kubernetes that is to be applied. */
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

/** For finding out whether a plan can be rendered at all: nothing in it depends on a controller. */
export const anyEnvironment: ProxyEnvironment = {
  version: '0.0.0',
  image: { registry: '', repository: 'proxy', tag: '0.0.0' },
  xds: { host: 'controller', port: 9978 },
}
