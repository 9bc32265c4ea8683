/** Every value of the chart `sluice`: its effect in the rendered objects, or its refusal. */
import { beforeAll, describe, expect, it } from 'vitest'
import { only, type Rendered, template } from '../support/helm.ts'
import { describeWithParts } from '../support/parts.ts'

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: object
}

const deployment = (objects: readonly Rendered[]) => only(objects, 'Deployment')
const podOf = (objects: readonly Rendered[]) => deployment(objects).spec.template
const containerOf = (objects: readonly Rendered[]) => podOf(objects).spec.containers[0]
const variable = (objects: readonly Rendered[], name: string): Variable | undefined =>
  containerOf(objects).env.find((one: Variable) => one.name === name)
const textOf = (objects: readonly Rendered[], name: string) => variable(objects, name)?.value
const portsOf = (objects: readonly Rendered[]) =>
  containerOf(objects).ports.map(
    (port: { name: string; containerPort: number }) => `${port.name} ${port.containerPort}`,
  )

const render = (values: object = {}) => template('sluice', values)
const refusal = (values: object) =>
  render(values).then(
    () => 'rendered',
    (error: Error) => error.message,
  )

describeWithParts(['helm'], 'the values of the chart', () => {
  let plain: readonly Rendered[]
  beforeAll(async () => {
    plain = await render()
  })

  describe('[values.controller] the control plane', () => {
    it('[values.controller.grantStore] passes proxies the place where they keep grants of users', async () => {
      expect(variable(plain, 'SLUICE_PROXY_GRANT_STORE')).toBeUndefined()
      const grantStore = 'nats://nats.example:4222'
      const shared = await render({ controller: { grantStore } })
      expect(textOf(shared, 'SLUICE_PROXY_GRANT_STORE')).toBe(grantStore)
      expect(await refusal({ controller: { grantStore: '/var/grants' } })).toContain('grantStore')
    })

    it('[values.controller.replicaCount] has one replica by default, and spreads several over hosts and zones', async () => {
      expect(deployment(plain).spec.replicas).toBe(1)
      const three = await render({ controller: { replicaCount: 3 } })
      expect(deployment(three).spec.replicas).toBe(3)
      const spread = podOf(three).spec.topologySpreadConstraints
      expect(spread.map((one: { topologyKey: string }) => one.topologyKey)).toEqual([
        'kubernetes.io/hostname',
        'topology.kubernetes.io/zone',
      ])
    })

    it('[values.controller.image.registry] [values.controller.image.repository] [values.controller.image.tag] [values.controller.image.pullPolicy] [values.image.registry] [values.image.tag] [values.image.pullPolicy] takes each part of its image from its own value, or else from the value for all images', async () => {
      expect(containerOf(plain).image).toBe('ghcr.io/sluice-dev/controller:0.1.0')
      expect(containerOf(plain).imagePullPolicy).toBe('IfNotPresent')
      expect(textOf(plain, 'SLUICE_PROXY_IMAGE_REGISTRY')).toBe('ghcr.io/sluice-dev')
      expect(textOf(plain, 'SLUICE_PROXY_IMAGE_TAG')).toBe('0.1.0')

      const image = { registry: 'registry.example:5000/mirror', tag: '9.9', pullPolicy: 'Always' }
      const all = await render({ image })
      expect(containerOf(all).image).toBe('registry.example:5000/mirror/controller:9.9')
      expect(containerOf(all).imagePullPolicy).toBe('Always')
      expect(textOf(all, 'SLUICE_PROXY_IMAGE_REGISTRY')).toBe('registry.example:5000/mirror')
      expect(textOf(all, 'SLUICE_PROXY_IMAGE_TAG')).toBe('9.9')

      const controller = {
        image: { registry: 'own.example', repository: 'c', tag: 'x', pullPolicy: 'Never' },
      }
      const own = await render({ image, controller })
      expect(containerOf(own).image).toBe('own.example/c:x')
      expect(containerOf(own).imagePullPolicy).toBe('Never')
      expect(textOf(own, 'SLUICE_PROXY_IMAGE_REGISTRY')).toBe('registry.example:5000/mirror')
    })

    it('[values.controller.logLevel] has the configured log level, and refuses an unknown one', async () => {
      expect(textOf(plain, 'SLUICE_LOG_LEVEL')).toBe('info')
      const quiet = await render({ controller: { logLevel: 'error' } })
      expect(textOf(quiet, 'SLUICE_LOG_LEVEL')).toBe('error')
      expect(await refusal({ controller: { logLevel: 'loud' } })).toContain('/controller/logLevel')
    })

    it('[values.controller.extraEnv] gets the additional variables, which replace those of the chart', async () => {
      const extraEnv = {
        ZONE: 'a',
        COUNT: 1000000,
        ON: true,
        WRAPPED: { value: 'b' },
        FROM: { valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        SLUICE_LOG_LEVEL: 'trace',
      }
      const objects = await render({ controller: { extraEnv } })
      expect(textOf(objects, 'ZONE')).toBe('a')
      expect(textOf(objects, 'COUNT')).toBe('1000000')
      expect(textOf(objects, 'ON')).toBe('true')
      expect(textOf(objects, 'WRAPPED')).toBe('b')
      expect(variable(objects, 'FROM')?.valueFrom).toEqual({
        secretKeyRef: { name: 's', key: 'k' },
      })
      expect(textOf(objects, 'SLUICE_LOG_LEVEL')).toBe('trace')
      const names = containerOf(objects).env.map((one: Variable) => one.name)
      expect(names).toEqual([...new Set(names)].sort())
      const both = { value: 'a', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }
      expect(await refusal({ controller: { extraEnv: { BOTH: both } } })).toContain('/BOTH')
    })

    it('[values.controller.podDisruptionBudget] gets a PodDisruptionBudget if one is configured', async () => {
      expect(plain.some(({ kind }) => kind === 'PodDisruptionBudget')).toBe(false)
      const objects = await render({ controller: { podDisruptionBudget: { minAvailable: 1 } } })
      expect(only(objects, 'PodDisruptionBudget').spec).toEqual({
        minAvailable: 1,
        selector: { matchLabels: deployment(objects).spec.selector.matchLabels },
      })
    })

    it('[values.controller.service.type] [values.controller.service.ports] [ports.xds] [ports.health] [ports.metrics] is reached through a Service with the configured type and ports', async () => {
      expect(only(plain, 'Service').spec.type).toBe('ClusterIP')
      expect(portsOf(plain)).toEqual(['grpc-xds 9978', 'health 9093', 'metrics 9092'])
      expect(textOf(plain, 'SLUICE_XDS_SERVICE_NAME')).toBe('sluice')
      const ports = { agwGrpc: 1978, health: 1093, metrics: 1092 }
      const objects = await render({ controller: { service: { type: 'NodePort', ports } } })
      const { spec } = only(objects, 'Service')
      expect(spec.type).toBe('NodePort')
      expect(
        spec.ports.map((port: { name: string; port: number }) => [port.name, port.port]),
      ).toEqual([
        ['grpc-xds', 1978],
        ['health', 1093],
        ['metrics', 1092],
      ])
      expect(portsOf(objects)).toEqual(['grpc-xds 1978', 'health 1093', 'metrics 1092'])
      for (const [name, value] of [
        ['SLUICE_XDS_ADDRESS', ':1978'],
        ['SLUICE_HEALTH_ADDRESS', ':1093'],
        ['SLUICE_METRICS_ADDRESS', ':1092'],
        ['SLUICE_XDS_SERVICE_PORT', '1978'],
      ] as const) {
        expect(textOf(objects, name), name).toBe(value)
      }
      expect(podOf(objects).metadata.annotations['prometheus.io/port']).toBe('1092')
    })

    it('[values.controller.strategy] has the configured update strategy', async () => {
      const quarter = { maxSurge: '25%', maxUnavailable: '25%' }
      const rolling = { type: 'RollingUpdate', rollingUpdate: quarter }
      expect(deployment(plain).spec.strategy).toEqual(rolling)
      const strategyOf = async (strategy: object) =>
        deployment(await render({ controller: { strategy } })).spec.strategy
      expect(await strategyOf({ rollingUpdate: { maxUnavailable: 0 } })).toEqual({
        type: 'RollingUpdate',
        rollingUpdate: { ...quarter, maxUnavailable: 0 },
      })
      expect(await strategyOf({ type: 'Recreate' })).toEqual({ type: 'Recreate' })
    })

    it('[values.controller.xds.tls.enabled] serves configuration over TLS with the Secret sluice-xds-cert', async () => {
      expect(variable(plain, 'SLUICE_XDS_TLS_ENABLED')).toBeUndefined()
      const objects = await render({ controller: { xds: { tls: { enabled: true } } } })
      expect(textOf(objects, 'SLUICE_XDS_TLS_ENABLED')).toBe('true')
      expect(podOf(objects).spec.volumes).toContainEqual({
        name: 'xds-tls',
        secret: { secretName: 'sluice-xds-cert' },
      })
      expect(containerOf(objects).volumeMounts).toContainEqual({
        name: 'xds-tls',
        mountPath: '/etc/xds-tls',
        readOnly: true,
      })
    })
  })

  describe('pods of the controller', () => {
    it('[values.deploymentAnnotations] [values.podAnnotations] have the configured annotations', async () => {
      expect(podOf(plain).metadata.annotations).toEqual({
        'prometheus.io/scrape': 'true',
        'prometheus.io/path': '/metrics',
        'prometheus.io/port': '9092',
      })
      const objects = await render({
        deploymentAnnotations: { a: 'b' },
        podAnnotations: { c: 'd', 'prometheus.io/scrape': 'false' },
      })
      expect(deployment(objects).metadata.annotations).toEqual({ a: 'b' })
      expect(podOf(objects).metadata.annotations).toMatchObject({
        c: 'd',
        'prometheus.io/scrape': 'false',
      })
    })

    const scheduling = {
      '[values.affinity]': ['affinity', { nodeAffinity: {} }],
      '[values.nodeSelector]': ['nodeSelector', { disk: 'fast' }],
      '[values.tolerations]': ['tolerations', [{ key: 'a', operator: 'Exists' }]],
      '[values.imagePullSecrets]': ['imagePullSecrets', [{ name: 'registry' }]],
    } as const
    it.each(Object.entries(scheduling))(
      '%s is copied into the pod spec',
      async (_, [field, given]) => {
        expect(podOf(plain).spec[field]).toBeUndefined()
        expect(podOf(await render({ [field]: given })).spec[field]).toEqual(given)
      },
    )

    it('[values.podSecurityContext] [values.securityContext] [values.resources] have a restricted security context by default, which the values replace', async () => {
      expect(podOf(plain).spec.securityContext).toBeUndefined()
      expect(containerOf(plain).resources).toBeUndefined()
      expect(containerOf(plain).securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        runAsNonRoot: true,
        runAsUser: 10101,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      })
      const objects = await render({
        podSecurityContext: { fsGroup: 7 },
        securityContext: { runAsUser: 8 },
        resources: { limits: { memory: '1Gi' } },
      })
      expect(podOf(objects).spec.securityContext).toEqual({ fsGroup: 7 })
      expect(containerOf(objects).securityContext).toEqual({ runAsUser: 8 })
      expect(containerOf(objects).resources).toEqual({ limits: { memory: '1Gi' } })
    })
  })

  describe('names of objects', () => {
    const nameWith = async (values: object, release: string) =>
      deployment(await template('sluice', values, { release })).metadata.name

    it('[values.nameOverride] [values.fullnameOverride] are made of the release and the chart, unless a value overrides them', async () => {
      expect(await nameWith({}, 'edge')).toBe('edge-sluice')
      expect(await nameWith({}, 'my-sluice')).toBe('my-sluice')
      expect(await nameWith({ nameOverride: 'gw' }, 'edge')).toBe('edge-gw')
      expect(await nameWith({ fullnameOverride: 'exactly' }, 'edge')).toBe('exactly')
      expect((await nameWith({ nameOverride: 'x'.repeat(63) }, 'edge')).length).toBe(63)
    })

    it('[values.serviceAccount.create] [values.serviceAccount.name] [values.serviceAccount.annotations] of the service account are generated by default, or those of an existing account', async () => {
      const accountOf = (objects: readonly Rendered[]) => podOf(objects).spec.serviceAccountName
      expect(accountOf(plain)).toBe('sluice')
      expect(only(plain, 'ServiceAccount').metadata.name).toBe('sluice')
      const named = await render({ serviceAccount: { name: 'n', annotations: { role: 'r' } } })
      expect(accountOf(named)).toBe('n')
      expect(only(named, 'ServiceAccount').metadata).toMatchObject({
        name: 'n',
        annotations: { role: 'r' },
      })
      expect(only(named, 'ClusterRoleBinding').subjects[0].name).toBe('n')
      const none = await render({ serviceAccount: { create: false } })
      expect(none.some(({ kind }) => kind === 'ServiceAccount')).toBe(false)
      expect(accountOf(none)).toBe('default')
      const theirs = await render({ serviceAccount: { create: false, name: 'theirs' } })
      expect(accountOf(theirs)).toBe('theirs')
    })
  })

  describe('input of the controller', () => {
    it('[values.discoveryNamespaceSelectors] can be limited to the namespaces that any of several selectors matches', async () => {
      expect(variable(plain, 'SLUICE_DISCOVERY_NAMESPACE_SELECTORS')).toBeUndefined()
      const selectors = [
        { matchLabels: { team: 'a' } },
        { matchExpressions: [{ key: 'env', operator: 'In', values: ['prod'] }] },
      ]
      const objects = await render({ discoveryNamespaceSelectors: selectors })
      const text = textOf(objects, 'SLUICE_DISCOVERY_NAMESPACE_SELECTORS') ?? ''
      expect(JSON.parse(text)).toEqual(selectors)
      expect(await refusal({ discoveryNamespaceSelectors: [{ matchLabel: {} }] })).toContain(
        'matchLabel',
      )
    })

    it('[values.gatewayClassParametersRefs] includes the default parameters of a class, by name and namespace', async () => {
      const refs = { agentgateway: { name: 'p', namespace: 'n' } }
      const objects = await render({ gatewayClassParametersRefs: refs })
      const text = textOf(objects, 'SLUICE_GATEWAY_CLASS_PARAMETERS_REFS') ?? ''
      expect(JSON.parse(text)).toEqual(refs)
      const half = { gatewayClassParametersRefs: { agentgateway: { name: 'p' } } }
      expect(await refusal(half)).toContain("missing property 'namespace'")
    })

    it('[values.inferenceExtension.enabled] includes InferencePools only if they are enabled', async () => {
      const groupsOf = (objects: readonly Rendered[]) =>
        only(objects, 'ClusterRole').rules.flatMap(
          (rule: { apiGroups: string[] }) => rule.apiGroups,
        )
      expect(groupsOf(plain)).not.toContain('inference.networking.k8s.io')
      expect(variable(plain, 'SLUICE_INFERENCE_EXTENSION_ENABLED')).toBeUndefined()
      const objects = await render({ inferenceExtension: { enabled: true } })
      expect(groupsOf(objects)).toContain('inference.networking.k8s.io')
      expect(textOf(objects, 'SLUICE_INFERENCE_EXTENSION_ENABLED')).toBe('true')
    })
  })

  it('[values.controller.kubernetesEvents.enabled] permits and writes Kubernetes Events unless they are disabled', async () => {
    const rulesOf = (objects: readonly Rendered[]) =>
      only(objects, 'ClusterRole').rules.filter(({ resources }: { resources: string[] }) =>
        resources.includes('events'),
      )
    expect(rulesOf(plain)).toEqual([
      { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    ])
    expect(variable(plain, 'SLUICE_KUBERNETES_EVENTS')).toBeUndefined()
    const objects = await render({ controller: { kubernetesEvents: { enabled: false } } })
    expect(rulesOf(objects)).toEqual([])
    expect(textOf(objects, 'SLUICE_KUBERNETES_EVENTS')).toBe('false')
  })

  describe('the event log', () => {
    it('is stored in the pod, on a volume, on an existing NATS server or on an installed one', async () => {
      expect(textOf(plain, 'SLUICE_LOG_FILE')).toBe('/var/lib/sluice/events.db')
      const kept = await render({ controller: { persistence: { enabled: true, size: '5Gi' } } })
      expect(only(kept, 'PersistentVolumeClaim').spec.resources.requests.storage).toBe('5Gi')
      expect(deployment(kept).spec.strategy).toEqual({ type: 'Recreate' })

      const url = await render({ controller: { nats: { url: 'nats://nats.example:4222' } } })
      expect(textOf(url, 'SLUICE_NATS')).toBe('nats://nats.example:4222')
      expect(variable(url, 'SLUICE_LOG_FILE')).toBeUndefined()

      const installed = await render({ nats: { enabled: true, password: 'p-1' } })
      const { stringData } = only(installed, 'Secret')
      expect(stringData.url).toBe('nats://sluice:p-1@sluice-nats.sluice-system.svc:4222')
      expect(only(installed, 'StatefulSet').spec.serviceName).toBe('sluice-nats')
      expect(variable(installed, 'SLUICE_NATS')?.valueFrom).toEqual({
        secretKeyRef: { name: 'sluice-nats', key: 'url' },
      })
    })

    it('is refused if it is configured in two places', async () => {
      const url = { url: 'nats://nats.example:4222' }
      const two = { controller: { nats: url }, nats: { enabled: true } }
      expect(await refusal(two)).toContain('the event log has one place')
      const disk = { controller: { nats: url, persistence: { enabled: true } } }
      expect(await refusal(disk)).toContain('keeps nothing on disk')
      const shared = { controller: { persistence: { enabled: true }, replicaCount: 2 } }
      expect(await refusal(shared)).toContain('keeps the log of a single replica')
    })
  })

  it('refuse what the API server or the controller would refuse after the installation', async () => {
    const refused: readonly (readonly [object, string])[] = [
      [{ controller: { service: { ports: { agwGrpc: 9093 } } } }, 'must be different ports'],
      [{ controller: { strategy: { type: 'Slow' } } }, '/controller/strategy/type'],
      [
        { controller: { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } } },
        '/controller/strategy',
      ],
      [
        { controller: { podDisruptionBudget: { minAvailable: 1, maxUnavailable: 1 } } },
        '/controller/podDisruptionBudget',
      ],
      [{ controller: { podDisruptionBudget: { minimum: 1 } } }, "'minimum'"],
      [
        { discoveryNamespaceSelectors: [{ matchExpressions: [{ key: 'a', operator: 'In' }] }] },
        '/discoveryNamespaceSelectors/0/matchExpressions/0',
      ],
      [{ fullnameOverride: 'Not_A_Name' }, '/fullnameOverride'],
      [{ nameOverride: 'Not_A_Name' }, '/nameOverride'],
    ]
    const answers = await Promise.all(refused.map(([values]) => refusal(values)))
    for (const [position, [, text]] of refused.entries()) expect(answers[position]).toContain(text)
  })

  it('refuse an unknown value by name', async () => {
    expect(await refusal({ controller: { replicas: 2 } })).toMatch(/controller.*'replicas'/s)
  })
})
