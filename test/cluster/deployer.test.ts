/** What `sluice controller` deploys, in a real API server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyOverlay } from '../../src/desired/deployment/overlay.ts'
import type { RenderedObject } from '../../src/desired/deployment/plan.ts'
import { apiServerParts, startApiServer } from '../../src/testing/api-server.ts'
import { gateway, TestCluster, type TestObject } from '../../src/testing/cluster.ts'
import { ControllerProcess } from '../../src/testing/controller.ts'
import { sluice } from '../../src/testing/gateway.ts'
import { describeWithParts } from '../../src/testing/parts.ts'
import { waitFor } from '../../src/testing/wait-for.ts'
import { overlayCases } from './overlay-cases.ts'

const places = {
  Deployment: '/apis/apps/v1/namespaces/default/deployments',
  Service: '/api/v1/namespaces/default/services',
  ServiceAccount: '/api/v1/namespaces/default/serviceaccounts',
  ConfigMap: '/api/v1/namespaces/default/configmaps',
  PodDisruptionBudget: '/apis/policy/v1/namespaces/default/poddisruptionbudgets',
  HorizontalPodAutoscaler: '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers',
} as const
type Kind = keyof typeof places

const targets = {
  deployment: 'Deployment',
  service: 'Service',
  serviceAccount: 'ServiceAccount',
  podDisruptionBudget: 'PodDisruptionBudget',
  horizontalPodAutoscaler: 'HorizontalPodAutoscaler',
} as const

const parameters = (name: string, spec: object): TestObject => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayParameters',
  metadata: { name, namespace: 'default' },
  spec,
})
/** Server-side apply makes null of a spec that loses all that it has. */
const plain = { logging: { level: 'info' } }
const withParameters = (name: string, more: object = {}) => ({
  infrastructure: { parametersRef: { group: 'sluice.dev', kind: 'GatewayParameters', name } },
  ...more,
})

describeWithParts([...apiServerParts, 'gateway-api-crds'], 'deployed proxies', () => {
  let cluster: TestCluster
  let controller: ControllerProcess

  const read = async (kind: Kind, name: string) => {
    const { status, body } = await cluster.server.request('GET', `${places[kind]}/${name}`)
    return status === 200 ? body : undefined
  }
  const there = (kind: Kind, name: string) =>
    waitFor(`${kind} ${name}`, () => read(kind, name)) as Promise<Record<string, never>>
  const gone = (kind: Kind, name: string) =>
    waitFor(`no ${kind} ${name}`, async () => (await read(kind, name)) === undefined)
  const until = (kind: Kind, name: string, holds: (object: never) => unknown) =>
    waitFor(`${kind} ${name} as wanted`, async () => {
      const object = await read(kind, name)
      return object !== undefined && holds(object as never) ? object : undefined
    })
  const patch = (kind: Kind, name: string, body: object) =>
    cluster.server.request('PATCH', `${places[kind]}/${name}?fieldManager=somebody`, body)
  const versions = async (name: string) =>
    Promise.all(
      (['Deployment', 'Service', 'ServiceAccount', 'ConfigMap'] as const).map(
        async (kind) => (await read(kind, name))?.metadata.resourceVersion,
      ),
    )
  const container = (deployment: { spec: { template: { spec: { containers: object[] } } } }) =>
    deployment.spec.template.spec.containers[0] as Record<string, never> & {
      image: string
      env: { name: string; value?: string }[]
    }

  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install()
    controller = await new ControllerProcess({
      kubeconfig: cluster.server.kubeconfig,
      env: { SLUICE_XDS_SERVICE_NAME: 'sluice', SLUICE_PROXY_IMAGE_TAG: '1.2.3' },
    }).start()
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True')
  }, 150_000)
  afterAll(async () => {
    await controller?.dispose()
    await cluster?.server.stop()
  })

  it('gives a Gateway its objects, and each the Gateway as owner', async () => {
    await cluster.apply(gateway('plain'))
    const { metadata } = await cluster.get('Gateway', 'plain')
    for (const kind of ['ServiceAccount', 'ConfigMap', 'Service', 'Deployment'] as const) {
      const object = (await there(kind, 'plain')) as unknown as RenderedObject
      expect(object.metadata.ownerReferences).toEqual([
        {
          apiVersion: 'gateway.networking.k8s.io/v1',
          kind: 'Gateway',
          name: 'plain',
          uid: metadata.uid,
          controller: true,
        },
      ])
      expect(object.metadata.labels).toMatchObject({
        'app.kubernetes.io/managed-by': 'sluice',
        'gateway.networking.k8s.io/gateway-name': 'plain',
        'gateway.networking.k8s.io/gateway-class-name': 'agentgateway',
      })
    }
    const deployment = await there('Deployment', 'plain')
    expect(container(deployment as never).image).toBe('ghcr.io/sluice-dev/sluice-proxy:1.2.3')
    expect(await read('PodDisruptionBudget', 'plain')).toBeUndefined()
    const { spec } = (await there('Service', 'plain')) as unknown as {
      spec: { type: string; ports: object[] }
    }
    expect(spec.type).toBe('LoadBalancer')
    expect(spec.ports).toMatchObject([{ name: 'listener-8080', port: 8080, targetPort: 8080 }])
  })

  it('takes the address of the Gateway from its Service, and the ports from its listeners', async () => {
    await cluster.condition('Gateway', 'plain', 'Programmed=False/Pending')
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } }
    await cluster.server.request('PATCH', `${places.Service}/plain/status`, { status })
    await waitFor('the address', async () => {
      const { addresses } = (await cluster.status('Gateway', 'plain')) as never as {
        addresses?: { value: string }[]
      }
      return addresses?.[0]?.value === '192.0.2.7'
    })
    const listeners = [
      { name: 'http', port: 8081, protocol: 'HTTP' },
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'own', port: 15021, protocol: 'HTTP' },
    ]
    await cluster.apply(gateway('plain', 'default', { listeners }))
    await until('Service', 'plain', ({ spec }: { spec: { ports: { name: string }[] } }) => {
      return spec.ports.map(({ name }) => name).join() === 'udp-53,listener-8081'
    })
    const text = JSON.stringify(await cluster.status('Gateway', 'plain'))
    expect(text).toContain("port 15021 is the proxy's own")
  })

  describe('GatewayParameters [endpoint.GatewayParameters]', () => {
    it('shape what is deployed, field by field [GatewayParameters.spec] [GatewayParameters.configs]', async () => {
      await cluster.apply(
        parameters('tuned', {
          logging: { level: 'debug', format: 'json' },
          image: { registry: 'r.example.com', repository: 'p', tag: 't', pullPolicy: 'Never' },
          env: [{ name: 'EXTRA', value: 'yes' }],
          resources: { requests: { cpu: '0.5' }, limits: { memory: '1Gi' } },
          shutdown: { min: 3, max: 40 },
          rawConfig: { config: { maxConnections: 10, logging: { format: 'text' } } },
          mesh: {},
        }),
      )
      await cluster.apply(gateway('tuned', 'default', withParameters('tuned')))
      const deployment = (await there('Deployment', 'tuned')) as never as {
        spec: {
          template: { spec: { terminationGracePeriodSeconds: number; containers: object[] } }
        }
      }
      const proxy = container(deployment)
      expect(proxy).toMatchObject({
        image: 'r.example.com/p:t',
        imagePullPolicy: 'Never',
        resources: { requests: { cpu: '500m' }, limits: { memory: '1Gi' } },
      })
      const env = new Map(proxy.env.map(({ name, value }) => [name, value]))
      expect(env.get('EXTRA')).toBe('yes')
      expect(env.get('RUST_LOG')).toBe('debug')
      expect(env.get('CONNECTION_MIN_TERMINATION_DEADLINE')).toBe('3s')
      expect(env.get('TERMINATION_GRACE_PERIOD_SECONDS')).toBe('40')
      expect(env.get('CA_ADDRESS')).toBe('https://istiod.istio-system.svc:15012')
      expect(env.get('TRUST_DOMAIN')).toBe('cluster.local')
      expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBe(40)
      const config = (await there('ConfigMap', 'tuned')) as never as {
        data: { 'config.yaml': string }
      }
      expect(config.data['config.yaml']).toContain('format: json')
      expect(config.data['config.yaml']).toContain('maxConnections: 10')
      const { message } = await cluster.condition('Gateway', 'tuned', 'Accepted=True')
      expect(message).toContain('HBONE is not supported yet')
    })

    it('ask for a budget and an autoscaler, and let them go', async () => {
      const asked = {
        podDisruptionBudget: {},
        horizontalPodAutoscaler: { spec: { maxReplicas: 3 } },
      }
      await cluster.apply(parameters('tuned', { ...asked, deployment: { spec: { replicas: 2 } } }))
      const budget = (await there('PodDisruptionBudget', 'tuned')) as never as {
        spec: { selector: { matchLabels: object } }
      }
      const deployment = (await there('Deployment', 'tuned')) as never as {
        spec: { selector: object }
      }
      expect(budget.spec.selector).toEqual(deployment.spec.selector)
      const scaler = (await there('HorizontalPodAutoscaler', 'tuned')) as never as { spec: object }
      expect(scaler.spec).toMatchObject({
        scaleTargetRef: { kind: 'Deployment', name: 'tuned' },
        maxReplicas: 3,
      })
      // The autoscaler's number stands, whatever the overlay began with.
      await patch('Deployment', 'tuned', {
        spec: { replicas: 3 },
        metadata: { labels: { x: 'y' } },
      })
      await cluster.apply(
        parameters('tuned', { ...asked, deployment: { spec: { replicas: 2, paused: true } } }),
      )
      const { spec } = await until(
        'Deployment',
        'tuned',
        (one: { spec: { paused?: boolean } }) => one.spec.paused,
      )
      expect(spec.replicas).toBe(3)
      await cluster.apply(parameters('tuned', plain))
      await gone('PodDisruptionBudget', 'tuned')
      await gone('HorizontalPodAutoscaler', 'tuned')
    })

    it('can be listed and deleted; a Gateway that refers to one that is gone keeps what runs', async () => {
      const { body } = await cluster.server.request('GET', cluster.collection('GatewayParameters'))
      expect(body).toMatchObject({ kind: 'GatewayParametersList', items: [{}] })
      const before = await versions('tuned')
      await cluster.delete('GatewayParameters', 'tuned')
      const { message } = await cluster.condition(
        'Gateway',
        'tuned',
        'Accepted=False/InvalidParameters',
      )
      expect(message).toBe('GatewayParameters default/tuned does not exist')
      expect(await versions('tuned')).toEqual(before)
      await cluster.apply(parameters('tuned', plain))
      await cluster.condition('Gateway', 'tuned', 'Accepted=True')
    })

    it('has a status that nobody writes [GatewayParameters.status]', async () => {
      expect((await cluster.get('GatewayParameters', 'tuned')).status).toBeUndefined()
    })

    it('apply at the class first, then at the Gateway', async () => {
      await cluster.apply(
        parameters('of-class', {
          env: [{ name: 'LEVEL', value: 'class' }],
          deployment: { spec: { replicas: 4, minReadySeconds: 1 } },
        }),
      )
      await cluster.apply(
        parameters('of-gateway', {
          env: [{ name: 'LEVEL', value: 'gateway' }],
          deployment: { spec: { replicas: null, minReadySeconds: 2 } },
        }),
      )
      await cluster.apply({
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'GatewayClass',
        metadata: { name: 'levels' },
        spec: {
          controllerName: 'sluice.dev/gateway-controller',
          parametersRef: {
            group: 'sluice.dev',
            kind: 'GatewayParameters',
            name: 'of-class',
            namespace: 'default',
          },
        },
      })
      const more = { gatewayClassName: 'levels' }
      await cluster.apply(gateway('levels', 'default', withParameters('of-gateway', more)))
      const deployment = (await there('Deployment', 'levels')) as never as {
        spec: { replicas: number; minReadySeconds: number; template: never }
      }
      expect(deployment.spec).toMatchObject({ replicas: 1, minReadySeconds: 2 })
      expect(container(deployment as never).env).toContainEqual({ name: 'LEVEL', value: 'gateway' })
    })
  })

  describe('what others do', () => {
    it('makes again what is deleted, and puts right what is changed', async () => {
      await cluster.server.request('DELETE', `${places.Service}/tuned`)
      await there('Service', 'tuned')
      await patch('Deployment', 'tuned', { spec: { template: { spec: { hostNetwork: true } } } })
      const image = { spec: { template: { spec: { $patch: 'merge' } } } }
      await patch('Deployment', 'tuned', image)
      const other = { name: 'proxy', image: 'evil:1' }
      const path = `${places.Deployment}/tuned?fieldManager=other&force=true`
      const body = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'tuned' },
        spec: { template: { spec: { containers: [other] } } },
      }
      const answer = await cluster.server.request(
        'PATCH',
        path,
        body,
        'application/apply-patch+yaml',
      )
      expect(answer.status).toBe(200)
      await until('Deployment', 'tuned', (one: never) =>
        container(one).image.startsWith('ghcr.io/sluice-dev/'),
      )
      await patch('Service', 'tuned', {
        metadata: { labels: { 'app.kubernetes.io/managed-by': null } },
      })
      await until(
        'Service',
        'tuned',
        ({ metadata }: { metadata: { labels: Record<string, string> } }) =>
          metadata.labels['app.kubernetes.io/managed-by'] === 'sluice',
      )
    })

    it('leaves alone what it does not set, and writes nothing that is right', async () => {
      await patch('Deployment', 'tuned', {
        spec: { replicas: 5 },
        metadata: { annotations: { 'example.com/note': 'theirs' } },
      })
      const before = await versions('tuned')
      await controller.stop()
      await controller.start()
      await cluster.apply(gateway('after', 'default'))
      await there('Deployment', 'after')
      expect(await versions('tuned')).toEqual(before)
      expect((await read('Deployment', 'tuned')).spec.replicas).toBe(5)
    })

    it('takes over nothing that is somebody else’s', async () => {
      await cluster.server.request('POST', places.ConfigMap, {
        metadata: { name: 'taken' },
        data: { theirs: 'x' },
      })
      await cluster.apply(gateway('taken'))
      const { message } = await cluster.condition(
        'Gateway',
        'taken',
        'Programmed=False/DeploymentFailed',
      )
      expect(message).toContain("ConfigMap default/taken exists and is not this Gateway's")
      expect((await read('ConfigMap', 'taken')).data).toEqual({ theirs: 'x' })
      expect(await read('Deployment', 'taken')).toBeUndefined()
    })
  })

  describe('what cannot be', () => {
    it('leaves everything as it is where the API server refuses an object, and says which', async () => {
      const before = await versions('tuned')
      const wrong = { spec: { template: { spec: { containers: [{ name: 'more' }] } } } }
      const service = { spec: { externalTrafficPolicy: 'Local' } }
      await cluster.apply(parameters('tuned', { deployment: wrong, service }))
      const { message } = await cluster.condition(
        'Gateway',
        'tuned',
        'Programmed=False/DeploymentFailed',
      )
      expect(message).toMatch(/Deployment tuned: .*containers\[\d\]\.image: Required value/)
      expect(await versions('tuned')).toEqual(before)
      const { stdout } = await sluice('log', '--log-file', controller.logFile)
      expect(stdout).toContain('deployment.failed')
      await cluster.apply(parameters('tuned', { service }))
      await until('Service', 'tuned', ({ spec }: { spec: { externalTrafficPolicy: string } }) => {
        return spec.externalTrafficPolicy === 'Local'
      })
      await cluster.condition('Gateway', 'tuned', 'Programmed=False/Pending')
    })

    it('refuses overlays that cannot be applied, and leaves what runs', async () => {
      const before = await versions('tuned')
      const nameless = { spec: { template: { spec: { containers: [{ image: 'x' }] } } } }
      await cluster.apply(parameters('tuned', { deployment: nameless }))
      const { message } = await cluster.condition(
        'Gateway',
        'tuned',
        'Accepted=False/InvalidParameters',
      )
      expect(message).toContain('spec.deployment.spec.template.spec.containers[0]: name is missing')
      expect(await versions('tuned')).toEqual(before)
      const explained = await sluice(
        'explain',
        'gateway',
        'default/tuned',
        '--log-file',
        controller.logFile,
      )
      expect(explained.stdout).toContain('object:GatewayParameters/default/tuned')
      await cluster.apply(parameters('tuned', plain))
      await cluster.condition('Gateway', 'tuned', 'Accepted=True')
    })

    it('removes what it deployed where somebody else runs the proxies', async () => {
      const addresses = [{ type: 'Hostname', value: 'edge.example.com' }]
      await cluster.apply(gateway('after', 'default', { addresses }))
      for (const kind of ['Deployment', 'Service', 'ConfigMap', 'ServiceAccount'] as const) {
        await gone(kind, 'after')
      }
    })
  })

  describe('overlays, as the API server itself would merge them', () => {
    let base: Record<string, RenderedObject & { metadata: { resourceVersion: string } }>

    beforeAll(async () => {
      await cluster.apply(
        parameters('overlaid', {
          resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } },
          service: {
            spec: { externalTrafficPolicy: 'Local', ports: [{ port: 443, name: 'https' }] },
          },
          serviceAccount: { spec: { secrets: [{ name: 'a' }, { name: 'b', namespace: 'x' }] } },
          podDisruptionBudget: {},
          horizontalPodAutoscaler: {
            spec: { behavior: { scaleUp: { stabilizationWindowSeconds: 5 } } },
          },
          deployment: {
            spec: {
              revisionHistoryLimit: 5,
              template: {
                spec: {
                  nodeSelector: { a: 'b' },
                  topologySpreadConstraints: [
                    { topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'ScheduleAnyway' },
                  ],
                  containers: [{ name: 'sidecar', image: 'sidecar:1' }],
                },
              },
            },
          },
        }),
      )
      await cluster.apply(gateway('overlaid', 'default', withParameters('overlaid')))
      base = Object.fromEntries(
        await Promise.all(
          Object.entries(targets).map(async ([target, kind]) => [
            target,
            await there(kind, 'overlaid'),
          ]),
        ),
      )
    })

    it.each(overlayCases)('[$rule] $target $spec', async ({ target, spec }) => {
      const live = base[target]
      if (live === undefined) throw new Error(`no ${target}`)
      const path = `${places[targets[target]]}/overlaid?dryRun=All`
      const patched = await cluster.server.request(
        'PATCH',
        path,
        target === 'serviceAccount' ? spec : { spec },
        'application/strategic-merge-patch+json',
      )
      const merged = applyOverlay(live, target, { from: 'case', spec })
      const put = await cluster.server.request('PUT', path, merged)
      expect(put.body, 'our result is taken').toMatchObject({ metadata: {} })
      expect(patched.body).toMatchObject({ metadata: {} })
      const plain = ({ metadata: _, status: __, ...fields }: Record<string, unknown>) => fields
      expect(plain(put.body)).toEqual(plain(patched.body))
    })
  })
})
