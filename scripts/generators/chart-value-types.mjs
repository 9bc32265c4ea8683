// How values of charts are described: a value has a JSON Schema and a line of documentation; a group is an
// object of values.

export const value = (schema, doc) => ({ schema, doc })
export const text = (doc, more = {}) => value({ type: 'string', ...more }, doc)
export const flag = (doc) => value({ type: 'boolean' }, doc)
export const port = (doc) => value({ type: 'integer', minimum: 1, maximum: 65_535 }, doc)
export const freeObject = (doc) => value({ type: 'object' }, doc)
export const texts = { type: 'object', additionalProperties: { type: 'string' } }
export const textMap = (doc) => value(texts, doc)
export const objects = (doc) => value({ type: 'array', items: { type: 'object' } }, doc)
export const quantity = (doc) => text(doc, { pattern: '^[0-9]+(\\.[0-9]+)?([EPTGMk]i?|m)?$' })

export const name = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$' }
export const optionalName = { type: 'string', pattern: '^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$' }

/** Of a Deployment (apps/v1); only a rolling update has a pace. */
export const strategy = {
  type: 'object',
  properties: {
    type: { enum: ['RollingUpdate', 'Recreate'] },
    rollingUpdate: { type: 'object' },
  },
  not: { properties: { type: { const: 'Recreate' } }, required: ['type', 'rollingUpdate'] },
}

export const amount = { type: ['integer', 'string'] }
/** Of a PodDisruptionBudget (policy/v1), without the selector, which is the chart's. */
export const budget = {
  type: 'object',
  additionalProperties: false,
  properties: {
    minAvailable: amount,
    maxUnavailable: amount,
    unhealthyPodEvictionPolicy: { enum: ['IfHealthyBudget', 'AlwaysAllow'] },
  },
  not: { required: ['minAvailable', 'maxUnavailable'] },
}

/** Names of objects begin with it, those of Services included (RFC 1123 labels). */
export const label = { maxLength: 63, pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$' }

export const environment = {
  type: 'object',
  propertyNames: { pattern: '^[-._a-zA-Z][-._a-zA-Z0-9]*$' },
  additionalProperties: {
    anyOf: [
      { type: ['string', 'number', 'boolean'] },
      {
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        maxProperties: 1,
        properties: {
          value: { type: ['string', 'number', 'boolean'] },
          valueFrom: { type: 'object' },
        },
      },
    ],
  },
}

export const monitor = (what) => ({
  enabled: flag(`Make a ${what} (the Prometheus operator's CRDs must be there).`),
  interval: text('How often metrics are read.', { pattern: '^[0-9]+(ms|s|m|h)$' }),
  labels: textMap('More labels of it, by which a Prometheus selects it.'),
})

/** A pull policy; empty for that of the cluster, or of another value. */
export const pullPolicy = (doc) =>
  value({ type: 'string', enum: ['', 'Always', 'IfNotPresent', 'Never'] }, doc)

/** A volume of the event log of a single replica. */
export const persistence = {
  enabled: flag('Keep the event log of a single replica on a volume.'),
  existingClaim: value(
    optionalName,
    'A claim that exists; empty: one is made, and kept by an uninstall.',
  ),
  storageClassName: text('Storage class of the claim; empty: the default of the cluster.'),
  size: quantity('Size of the claim.'),
}

/** Values that every chart with pods has. */
export const common = {
  imagePullSecrets: objects('Secrets with which images are pulled: list of `{name}`.'),
  nameOverride: text(
    'Replaces the name of the chart in the names of objects (`RELEASE-NAME`).',
    label,
  ),
  fullnameOverride: text('The whole name of every object.', label),
  serviceAccount: {
    create: flag('Make a service account.'),
    name: value(
      optionalName,
      'Name of the ServiceAccount. If empty: the full name if one is created, otherwise `default`.',
    ),
    annotations: textMap('Its annotations.'),
  },
  deploymentAnnotations: textMap('Annotations of the Deployment.'),
  podAnnotations: textMap(
    'Annotations of the pods. `prometheus.io/path` and `prometheus.io/port` are set unless they are here.',
  ),
  podSecurityContext: freeObject('Security context of the pods.'),
  securityContext: freeObject(
    'Security context of the container, in place of the default: not root, no privileges, read-only root file system, the runtime’s seccomp profile.',
  ),
  resources: freeObject('Requests and limits of the container.'),
  nodeSelector: textMap('Node selector of the pods.'),
  tolerations: objects('Tolerations of the pods.'),
  affinity: freeObject('Affinity of the pods.'),
}
