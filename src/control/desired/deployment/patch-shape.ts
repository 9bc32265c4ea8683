/**
 * How Kubernetes merges the lists of the objects that are deployed: the merge keys of
 * k8s.io/api (`patchStrategy` and `patchMergeKey`) for the fields of their specs that have one.
 *
 * One entry differs: Kubernetes replaces tolerations as a whole, but they are merged by `key` here, as
 * GatewayParameters documents.
 */

/** How one field is merged. `mergeKey` is the field that identifies the items of a list of maps. */
export interface FieldShape {
  readonly mergeKey?: string
  /** Second identifying field, such as the protocol of a port, and its default value if it is not set. */
  readonly secondKey?: { readonly field: string; readonly defaultValue: string }
  /** The map is replaced, not merged. */
  readonly isReplaced?: true
  /** Shapes of the fields of the map, or of the items of the list. */
  readonly fields?: PatchShape
}

export type PatchShape = Readonly<Record<string, FieldShape>>

const named: FieldShape = { mergeKey: 'name' }
const protocol = { field: 'protocol', defaultValue: 'TCP' }

const metadata: FieldShape = { fields: { ownerReferences: { mergeKey: 'uid' } } }

const containers: FieldShape = {
  mergeKey: 'name',
  fields: {
    ports: { mergeKey: 'containerPort', secondKey: protocol },
    env: named,
    volumeMounts: { mergeKey: 'mountPath' },
    volumeDevices: { mergeKey: 'devicePath' },
  },
}

const podSpec: PatchShape = {
  volumes: named,
  containers,
  initContainers: containers,
  ephemeralContainers: containers,
  imagePullSecrets: named,
  hostAliases: { mergeKey: 'ip' },
  topologySpreadConstraints: { mergeKey: 'topologyKey' },
  schedulingGates: named,
  resourceClaims: named,
  tolerations: { mergeKey: 'key', secondKey: { field: 'effect', defaultValue: '' } },
}

const pods: PatchShape = { template: { fields: { metadata, spec: { fields: podSpec } } } }

/** Shapes of what overlays patch: the spec, or for a ServiceAccount all of it except its metadata. */
export const shapes = {
  deployment: pods,
  daemonSet: pods,
  service: { ports: { mergeKey: 'port', secondKey: protocol } },
  serviceAccount: { secrets: named },
  podDisruptionBudget: { selector: { isReplaced: true } },
  horizontalPodAutoscaler: {},
} as const satisfies Readonly<Record<string, PatchShape>>
