/**
 * Renders the objects of a Gateway: ServiceAccount, ConfigMap, Service and Deployment or DaemonSet, and if requested
 * a PodDisruptionBudget and a HorizontalPodAutoscaler. Overlays are applied last, first the class's,
 * then the Gateway's. They cannot change names, owner and the labels by which objects are found.
 */

import { failAll, type Outcome, succeed } from '../../../ground/base/outcome.ts'
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import {
  gatewayClassLabel,
  gatewayNameLabel,
  managedBy,
  managedByLabel,
  proxyObjectName,
} from '../../../ground/model/proxy-names.ts'
import { configFile } from './config-file.ts'
import { applyOverlay } from './overlay.ts'
import type { NamedOverlay, OverlayName } from './parameters.ts'
import type { ProxyEnvironment, ProxyPlan, RenderedObject } from './plan.ts'
import { podTemplate } from './render-pod.ts'
import { isMap, PatchError } from './strategic-merge.ts'

type Labels = Readonly<Record<string, string>>

/** Must never get more labels, since the selector of a workload cannot be changed. */
function selectorLabels({ name }: ProxyPlan): Labels {
  const label = proxyObjectName(name)
  return {
    'app.kubernetes.io/name': label,
    'app.kubernetes.io/instance': label,
    [gatewayNameLabel]: label,
  }
}

/** Makes a text a valid label value, which has at most 63 characters. */
const labelValue = (text: string) => (text.length <= 63 ? text : proxyObjectName(text))

function podLabels(plan: ProxyPlan): Labels {
  return {
    ...plan.labels,
    [gatewayClassLabel]: labelValue(plan.className),
    ...selectorLabels(plan),
  }
}

/** Labels by which the controller finds the objects that it deployed. */
function ownLabels(plan: ProxyPlan): Labels {
  return { [managedByLabel]: managedBy, [gatewayNameLabel]: proxyObjectName(plan.name) }
}

function metadataOf(
  plan: ProxyPlan,
  { version }: ProxyEnvironment,
  name = proxyObjectName(plan.name),
): RenderedObject['metadata'] {
  return {
    name,
    namespace: plan.namespace,
    labels: {
      ...podLabels(plan),
      'app.kubernetes.io/version': labelValue(version),
      ...ownLabels(plan),
    },
    ...(Object.keys(plan.annotations).length > 0 && { annotations: plan.annotations }),
    ownerReferences: [
      {
        apiVersion: `${gatewayGroup}/v1`,
        kind: 'Gateway',
        name: plan.name,
        uid: plan.uid,
        controller: true,
      },
    ],
  }
}

function servicePorts({ ports }: ProxyPlan): object[] {
  return ports.map(({ port, protocol }) => ({
    name: protocol === 'UDP' ? `udp-${port}` : `listener-${port}`,
    protocol,
    port,
    targetPort: port,
  }))
}

/**
 * How new pods replace old ones. This is set explicitly: a default that the API server adds has no owner, so it
 * would remain, and be refused, when an overlay changes the type. On each node, the new pod of a DaemonSet is ready
 * before the old one is stopped.
 */
const workloads = {
  Deployment: {
    target: 'deployment',
    update: {
      strategy: {
        type: 'RollingUpdate',
        rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' },
      },
    },
    disruptions: { maxUnavailable: 1 },
  },
  DaemonSet: {
    target: 'daemonSet',
    update: {
      updateStrategy: {
        type: 'RollingUpdate',
        rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 },
      },
    },
    // Kubernetes computes `maxUnavailable` only for pods that can be scaled.
    disruptions: { minAvailable: 1 },
  },
} as const

export type WorkloadKind = keyof typeof workloads

export const workloadKind = ({ parameters }: Pick<ProxyPlan, 'parameters'>): WorkloadKind =>
  parameters.workload?.kind ?? 'Deployment'

const workloadOf = (plan: ProxyPlan) => workloads[workloadKind(plan)]

/** Returns the overlays for the kinds of workloads that the plan does not use. */
export function unusedOverlays(plan: ProxyPlan): readonly NamedOverlay[] {
  return Object.values(workloads)
    .filter((workload) => workload !== workloadOf(plan))
    .flatMap(({ target }) => plan.overlays[target] ?? [])
}

function specsOf(plan: ProxyPlan, environment: ProxyEnvironment, config: string) {
  const matchLabels = selectorLabels(plan)
  const name = proxyObjectName(plan.name)
  const { address } = plan
  return {
    service: {
      type: 'LoadBalancer',
      selector: matchLabels,
      ports: servicePorts(plan),
      ...(address !== undefined && { loadBalancerIP: address }),
    },
    workload: {
      selector: { matchLabels },
      ...workloadOf(plan).update,
      template: podTemplate(plan, environment, podLabels(plan), config),
    },
    podDisruptionBudget: { selector: { matchLabels } },
    horizontalPodAutoscaler: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
    },
  }
}

/** Adds fields that the API server requires if an overlay does not set them. */
function withRequiredFields(
  plan: ProxyPlan,
  target: OverlayName,
  object: RenderedObject,
): RenderedObject {
  const spec = isMap(object.spec) ? object.spec : {}
  const has = (name: string) => Object.hasOwn(spec, name)
  if (target === 'podDisruptionBudget' && !has('minAvailable') && !has('maxUnavailable')) {
    return { ...object, spec: { ...spec, ...workloadOf(plan).disruptions } }
  }
  if (target === 'horizontalPodAutoscaler' && !has('maxReplicas')) {
    const { minReplicas } = spec
    const least = typeof minReplicas === 'number' ? minReplicas : 1
    return { ...object, spec: { ...spec, maxReplicas: Math.max(10, least) } }
  }
  return isMap(object.spec) ? { ...object, spec: withoutRollingUpdate(spec) } : object
}

/** Removes `rollingUpdate`, which is only allowed if the type of the strategy is RollingUpdate. */
function withoutRollingUpdate(spec: Readonly<Record<string, unknown>>) {
  for (const name of ['strategy', 'updateStrategy']) {
    const strategy = spec[name]
    if (!isMap(strategy) || strategy.type === undefined) continue
    if (strategy.type === 'RollingUpdate') continue
    const { rollingUpdate: _, ...kept } = strategy
    return { ...spec, [name]: kept }
  }
  return spec
}

function overlaid(plan: ProxyPlan, target: OverlayName, object: RenderedObject): RenderedObject {
  const overlays = plan.overlays[target] ?? []
  const patched = overlays.reduce(
    (before, overlay) => applyOverlay(before, target, overlay),
    object,
  )
  const { metadata } = patched
  const labels = { ...metadata.labels, ...ownLabels(plan) }
  return withRequiredFields(plan, target, { ...patched, metadata: { ...metadata, labels } })
}

/** Renders all objects in the order in which to apply them. Fails if an overlay cannot be applied. */
export function renderProxy(
  plan: ProxyPlan,
  environment: ProxyEnvironment,
): Outcome<readonly RenderedObject[], string> {
  const config = configFile(plan.parameters)
  const specs = specsOf(plan, environment, config)
  const metadata = metadataOf(plan, environment)
  const { ca } = environment.xds
  try {
    return succeed([
      overlaid(plan, 'serviceAccount', {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata,
        automountServiceAccountToken: false,
      }),
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'config.yaml': config } },
      ...(ca === undefined
        ? []
        : [
            {
              apiVersion: 'v1',
              kind: 'ConfigMap',
              metadata: metadataOf(plan, environment, `${metadata.name}-xds-ca`),
              data: { 'ca.crt': ca },
            },
          ]),
      overlaid(plan, 'service', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata,
        spec: specs.service,
      }),
      overlaid(plan, workloadOf(plan).target, {
        apiVersion: 'apps/v1',
        kind: workloadKind(plan),
        metadata,
        spec: specs.workload,
      }),
      ...optionalObjects(plan, metadata, specs),
    ])
  } catch (error) {
    if (error instanceof PatchError) return failAll([error.message])
    throw error
  }
}

const optional = [
  ['podDisruptionBudget', 'policy/v1', 'PodDisruptionBudget'],
  ['horizontalPodAutoscaler', 'autoscaling/v2', 'HorizontalPodAutoscaler'],
] as const

/** Optional objects: each one is rendered if the parameters have its field, even if that is empty. */
function optionalObjects(
  plan: ProxyPlan,
  metadata: RenderedObject['metadata'],
  specs: ReturnType<typeof specsOf>,
): RenderedObject[] {
  return optional.flatMap(([target, apiVersion, kind]) => {
    const [overlay] = plan.overlays[target] ?? []
    if (overlay === undefined) return []
    if (target === 'horizontalPodAutoscaler' && workloadKind(plan) === 'DaemonSet') {
      throw new PatchError(
        `${overlay.from}: a DaemonSet runs one proxy on each node and cannot be scaled`,
      )
    }
    return [overlaid(plan, target, { apiVersion, kind, metadata, spec: specs[target] })]
  })
}
