/**
 * How Kubernetes merges the lists of the objects that are deployed: the merge keys of
 * k8s.io/api (`patchStrategy` and `patchMergeKey`), as far as specs of these objects have any.
 *
 * One row is our own: tolerations, which Kubernetes takes as a whole, merge by `key` here, because
 * the interface of GatewayParameters says so.
 */

/** Of a list of maps: the field that tells its items apart. */
export interface FieldShape {
  readonly mergeKey?: string
  /** Tells items apart that share the merge key, such as the protocols of one port. */
  readonly also?: { readonly field: string; readonly unset: string }
  /** A map that is never merged, only replaced. */
  readonly isReplaced?: true
  /** Fields of the map, or of the items of the list. */
  readonly fields?: Shape
}

export type Shape = Readonly<Record<string, FieldShape>>

const named: FieldShape = { mergeKey: 'name' }
const protocol = { field: 'protocol', unset: 'TCP' }

const metadata: FieldShape = { fields: { ownerReferences: { mergeKey: 'uid' } } }

const containers: FieldShape = {
  mergeKey: 'name',
  fields: {
    ports: { mergeKey: 'containerPort', also: protocol },
    env: named,
    volumeMounts: { mergeKey: 'mountPath' },
    volumeDevices: { mergeKey: 'devicePath' },
  },
}

const podSpec: Shape = {
  volumes: named,
  containers,
  initContainers: containers,
  ephemeralContainers: containers,
  imagePullSecrets: named,
  hostAliases: { mergeKey: 'ip' },
  topologySpreadConstraints: { mergeKey: 'topologyKey' },
  schedulingGates: named,
  resourceClaims: named,
  tolerations: { mergeKey: 'key', also: { field: 'effect', unset: '' } },
}

/** Shapes of what an overlay patches: the spec, or all of a ServiceAccount but its metadata. */
export const shapes = {
  deployment: { template: { fields: { metadata, spec: { fields: podSpec } } } },
  service: { ports: { mergeKey: 'port', also: protocol } },
  serviceAccount: { secrets: named },
  podDisruptionBudget: { selector: { isReplaced: true } },
  horizontalPodAutoscaler: {},
} as const satisfies Readonly<Record<string, Shape>>
