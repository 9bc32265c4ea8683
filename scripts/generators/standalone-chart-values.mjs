// The values of charts/sluice-standalone: what each may be, and what it does.
import {
  budget,
  common,
  environment,
  flag,
  monitor,
  name,
  objects,
  persistence,
  pullPolicy,
  strategy,
  text,
  textMap,
  value,
} from './chart-value-types.mjs'

const names = { type: 'array', uniqueItems: true, items: name }
const portNumber = { type: 'integer', minimum: 1, maximum: 65_535 }

const servicePort = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'port'],
  properties: {
    name: { type: 'string', maxLength: 15, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' },
    port: portNumber,
    targetPort: portNumber,
    nodePort: portNumber,
    protocol: { enum: ['TCP', 'UDP'] },
    appProtocol: { type: 'string' },
  },
}

const manifest = {
  type: 'object',
  required: ['apiVersion', 'kind', 'metadata'],
  properties: { apiVersion: { type: 'string' }, kind: { type: 'string' } },
}

/** Of a HorizontalPodAutoscaler (autoscaling/v2), without the target, which is the chart's Deployment. */
const autoscaler = {
  type: 'object',
  additionalProperties: false,
  properties: {
    minReplicas: { type: 'integer', minimum: 1 },
    maxReplicas: { type: 'integer', minimum: 1 },
    metrics: { type: 'array', items: { type: 'object' } },
    behavior: { type: 'object' },
  },
}

export const standaloneValues = {
  manifests: value(
    { type: 'array', items: manifest },
    'Objects as `sluice run` reads them: Gateways, routes, GatewayBackends, GatewayPolicies, Services. They become a ConfigMap, so write no Secrets here.',
  ),
  existingConfigMaps: value(
    names,
    'ConfigMaps of the namespace whose keys are manifest files, such as `routes.yaml`.',
  ),
  existingSecrets: value(
    names,
    'Secrets of the namespace whose keys are manifest files. Objects of the kind Secret that the configuration refers to belong here.',
  ),
  replicaCount: value(
    { type: 'integer', minimum: 0 },
    'Replicas, unless `autoscaling` is set. Each counts local limits for itself.',
  ),
  strategy: value(
    strategy,
    'Strategy of the Deployment. If empty: a rolling update with 25 % surge and 25 % unavailable (`Recreate` if `persistence` is enabled).',
  ),
  autoscaling: value(
    autoscaler,
    'Spec of a HorizontalPodAutoscaler, without `scaleTargetRef`; empty: none.',
  ),
  podDisruptionBudget: value(budget, 'Spec of a PodDisruptionBudget; empty: none.'),
  terminationGracePeriodSeconds: value(
    { type: 'integer', minimum: 1 },
    'Time that a pod has to finish requests after the stop signal. It accepts connections for 10 s of it.',
  ),
  image: {
    registry: text('Registry of the image.'),
    repository: text('Repository of the image.', { minLength: 1 }),
    tag: text('Tag of the image; empty: the version of the chart.'),
    pullPolicy: pullPolicy('Pull policy.'),
  },
  logLevel: text('Log level for standard error, such as `info` or `info,sluice::proxy=debug`.', {
    minLength: 1,
  }),
  extraEnv: value(
    environment,
    '[Settings](settings.md) as variables, and others: name to a scalar, to `{value}` or to `{valueFrom}`. One that the chart sets itself is replaced.',
  ),
  extraVolumes: objects('More volumes of the pods, such as files with CA certificates.'),
  extraVolumeMounts: objects('Where `extraVolumes` are mounted in the container.'),
  service: {
    type: value(
      { type: 'string', enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
      'Type of the Service.',
    ),
    ports: value(
      { type: 'array', minItems: 1, items: servicePort },
      'Ports of the Service: `{name, port, targetPort, nodePort, protocol, appProtocol}`. `targetPort` is the port of a listener of the manifests; if omitted, it is `port`.',
    ),
    annotations: textMap('Annotations of the Service.'),
    loadBalancerClass: text('Class of the load balancer; empty: the default of the cluster.'),
    externalTrafficPolicy: value(
      { type: 'string', enum: ['', 'Cluster', 'Local'] },
      '`Local` keeps the addresses of clients. Only for NodePort and LoadBalancer.',
    ),
  },
  console: {
    enabled: flag(
      'Serve the web console. It listens on the loopback address of the pod only: reach it with `kubectl port-forward`.',
    ),
  },
  persistence,
  ...common,
  topologySpreadConstraints: objects('Topology spread constraints of the pods.'),
  priorityClassName: text('Priority class of the pods.'),
  metrics: { podMonitor: monitor('PodMonitor for the pods') },
}
