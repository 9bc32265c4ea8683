/**
 * The charts in a real API server: installed, upgraded and removed by helm. There is no kubelet, so
 * the test starts the container of the installed Deployment: with its arguments and environment, as
 * its service account, and only with the permissions of the chart.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { gateway, route, service, TestCluster } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { readCrds } from '../support/crds.ts'
import { freePort, startGateway } from '../support/gateway.ts'
import { chartPath, helm, only, template } from '../support/helm.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const namespace = 'sluice-system'
const deploymentPath = `/apis/apps/v1/namespaces/${namespace}/deployments/sluice`

const rbac = '/apis/rbac.authorization.k8s.io/v1'

interface Listed {
  readonly metadata: {
    readonly name: string
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[]
  }
}

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } }
}

describeWithParts([...apiServerParts, 'gateway-api-crds', 'helm'], 'the charts', () => {
  let cluster: TestCluster
  let controller: ControllerProcess | undefined

  const install = (
    verb: 'install' | 'upgrade',
    chart: string,
    values: object = {},
    where = namespace,
  ) =>
    helm(
      [
        verb,
        chart,
        chartPath(chart),
        `--kubeconfig=${cluster.server.kubeconfig}`,
        `--namespace=${where}`,
        ...(verb === 'install' ? ['--create-namespace'] : []),
      ],
      values,
    )
  const deployment = async () => (await cluster.server.request('GET', deploymentPath)).body

  /** Objects that only the garbage collector removes, with the owners whose deletion it waits for. */
  const ownersOfWhatIsLeft = async () => {
    const paths = [
      '/apis/gateway.networking.k8s.io/v1/gatewayclasses',
      `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
      `/api/v1/namespaces/${namespace}/secrets?labelSelector=app.kubernetes.io/managed-by=sluice`,
    ]
    const lists = await Promise.all(paths.map((path) => cluster.server.request('GET', path)))
    return lists.flatMap(({ body }) =>
      body.items.map(({ metadata }: Listed) => {
        const kind = body.kind.replace(/List$/, '')
        const owners = metadata.ownerReferences ?? []
        return `${kind} ${metadata.name} of ${owners.map((one) => `${one.kind} ${one.name}`)}`
      }),
    )
  }

  /** Every object in the namespace of the release, of whatever kind the API server has. */
  const everythingIn = async (where: string): Promise<string[]> => {
    const get = async (path: string) => (await cluster.server.request('GET', path)).body
    const { groups } = await get('/apis')
    const versions = groups.map(
      ({ preferredVersion }: { preferredVersion: { groupVersion: string } }) =>
        `/apis/${preferredVersion.groupVersion}`,
    )
    const found = await Promise.all(
      ['/api/v1', ...versions].map(async (base) => {
        const { resources } = await get(base)
        const lists = resources.filter(
          (one: { namespaced: boolean; verbs: string[] }) =>
            one.namespaced && one.verbs.includes('list'),
        )
        const all = lists.map(async ({ name, kind }: { name: string; kind: string }) => {
          const { items = [] } = await get(`${base}/namespaces/${where}/${name}`)
          return items.map(({ metadata }: Listed) => `${kind} ${metadata.name}`)
        })
        return (await Promise.all(all)).flat()
      }),
    )
    return found.flat().sort()
  }

  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install(
      readCrds(join(partPath('gateway-api-crds'), 'standard')),
    )
    await install('install', 'sluice-crds')
    await install('install', 'sluice', {
      discoveryNamespaceSelectors: [{ matchLabels: { 'kubernetes.io/metadata.name': 'default' } }],
      gatewayClassParametersRefs: { agentgateway: { name: 'all', namespace } },
      controller: { logLevel: 'debug', extraEnv: { SLUICE_LEASE_DURATION: '3s' } },
    })
  }, 150_000)
  afterAll(async () => {
    await controller?.dispose()
    await cluster?.server.stop()
  })

  it('[design.helm] are installed, and the controller works with the permissions of the chart alone', async () => {
    const { spec } = await deployment()
    const [container] = spec.template.spec.containers
    const env = Object.fromEntries(
      (container.env as Variable[]).map(({ name, value, valueFrom }) => {
        const field = valueFrom?.fieldRef?.fieldPath
        return [name, value ?? (field === 'metadata.namespace' ? namespace : 'sluice-0')]
      }),
    )
    controller = await new ControllerProcess({
      kubeconfig: await cluster.kubeconfigOf(spec.template.spec.serviceAccountName, namespace),
      env,
      args: container.args.slice(1),
    }).start()
    await cluster.applyAll([
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'GatewayParameters',
        metadata: { name: 'all', namespace },
        spec: { logging: { level: 'debug' } },
      },
      gateway('edge'),
      service('shop'),
      route('shop', 'edge', 'shop'),
    ])
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True')
    await cluster.condition('HTTPRoute', 'shop', 'Accepted=True/Accepted')
    const { spec: gatewayClass } = await cluster.get('GatewayClass', 'agentgateway')
    expect(gatewayClass.parametersRef).toEqual({
      group: 'sluice.dev',
      kind: 'GatewayParameters',
      name: 'all',
      namespace,
    })
    const deployed = '/apis/apps/v1/namespaces/default/deployments/edge'
    await waitFor('the proxy of the Gateway', async () => {
      return (await cluster.server.request('GET', deployed)).status === 200
    })
    expect(await controller.metric('sluice_controller_ready')).toBe(1)
    expect(controller.stderr).not.toMatch(/forbidden/)
    // What no other level shows, and a route that is in no selected namespace.
    expect(controller.stderr).toMatch(/^debug: following gateways$/m)
  })

  it('are upgraded without changing pod selectors, and keep every object', async () => {
    const before = await deployment()
    await install('upgrade', 'sluice', { image: { tag: 'next' }, controller: { replicaCount: 2 } })
    const after = await deployment()
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(after.spec.selector).toEqual(before.spec.selector)
    expect(after.spec.replicas).toBe(2)
    expect(after.spec.template.spec.containers[0].image).toMatch(/:next$/)
    await cluster.apply({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayBackend',
      metadata: { name: 'kept', namespace: 'default' },
      spec: { static: { host: 'a.example', port: 80 } },
    })
    await install('upgrade', 'sluice-crds')
    expect(await cluster.get('GatewayBackend', 'kept')).toBeDefined()
  })

  it('[values.controller.podDisruptionBudget] are accepted whole by the API server, options and all', async () => {
    await install('upgrade', 'sluice', {
      controller: { replicaCount: 3, podDisruptionBudget: { maxUnavailable: 1 } },
      nats: { enabled: true },
      metrics: { dashboards: { enabled: true } },
      inferenceExtension: { enabled: true },
    })
    const secretPath = `/api/v1/namespaces/${namespace}/secrets/sluice-nats`
    const passwordOf = async () => (await cluster.server.request('GET', secretPath)).body.data
    const first = await passwordOf()
    expect(Buffer.from(first.password, 'base64').toString()).toMatch(/^[A-Za-z0-9]{32}$/)
    await install('upgrade', 'sluice', { nats: { enabled: true } })
    expect(await passwordOf()).toEqual(first)
    // One pod at a time has the volume, whatever the strategy was before.
    await install('upgrade', 'sluice', { controller: { persistence: { enabled: true } } })
    expect((await deployment()).spec.strategy).toEqual({ type: 'Recreate' })
  })

  it('install a standalone gateway whose objects the API server accepts, options and all', async () => {
    const standalone = (verb: 'install' | 'upgrade', values: object) =>
      install(verb, 'sluice-standalone', values, 'apps')
    await standalone('install', {
      manifests: [gateway('edge')],
      existingSecrets: ['keys'],
      persistence: { enabled: true },
      podDisruptionBudget: { minAvailable: 1 },
      service: {
        type: 'LoadBalancer',
        externalTrafficPolicy: 'Local',
        ports: [{ name: 'http', port: 80, targetPort: 8080, appProtocol: 'http' }],
      },
      console: { enabled: true },
    })
    await standalone('upgrade', {
      autoscaling: { minReplicas: 2, maxReplicas: 5 },
      topologySpreadConstraints: [
        { topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'ScheduleAnyway' },
      ],
    })
    expect(await everythingIn('apps')).toContain('HorizontalPodAutoscaler sluice-standalone')
  })

  it('are uninstalled, leaving only CRDs and their objects', async () => {
    expect(await ownersOfWhatIsLeft()).toEqual([
      'GatewayClass agentgateway of ClusterRole sluice-sluice-system',
      'Lease sluice-controller of Deployment sluice',
      'Secret sluice-digest-key of Deployment sluice',
    ])
    await controller?.stop()
    const args = [`--kubeconfig=${cluster.server.kubeconfig}`, `--namespace=${namespace}`]
    await promisify(execFile)(partPath('helm'), ['uninstall', 'sluice', ...args])
    expect((await cluster.server.request('GET', deploymentPath)).status).toBe(404)
    // Lease and key go with their owner; the CRDs and the parameters are releases and objects of others.
    const left = await everythingIn(namespace)
    expect(left.filter((one) => !one.startsWith('Event '))).toEqual([
      'GatewayParameters all',
      'Lease sluice-controller',
      // The log is history, and is kept.
      'PersistentVolumeClaim sluice-log',
      'Secret sh.helm.release.v1.sluice-crds.v1',
      'Secret sh.helm.release.v1.sluice-crds.v2',
      'Secret sluice-digest-key',
    ])
    expect(await cluster.get('GatewayBackend', 'kept')).toBeDefined()
    for (const path of ['', `/namespaces/${namespace}`].map((place) => `${rbac}${place}`)) {
      for (const kind of path === rbac ? ['clusterroles', 'clusterrolebindings'] : ['roles']) {
        const { body } = await cluster.server.request('GET', `${path}/${kind}`)
        const names = body.items.map((one: Listed) => one.metadata.name)
        expect(names.filter((name: string) => name.startsWith('sluice'))).toEqual([])
      }
    }
  })
})

describeWithParts(['helm'], 'the request of helm test', () => {
  it('passes through a Gateway made for the test, and prints the response', async () => {
    const port = await freePort()
    const rendered = await template('sluice', { tests: { listenerPort: port } })
    const objects = rendered.filter(
      ({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'test',
    )
    const [container] = only(objects, 'Pod').spec.containers
    const manifests = objects
      .filter(({ kind }) => kind !== 'Pod')
      .map((object) => JSON.stringify(object))
    const running = await startGateway({ manifests: { 'test.yaml': manifests.join('\n---\n') } })
    const [, ...flags] = container.command
    const EXPECTED = container.env.find(({ name }: Variable) => name === 'EXPECTED').value
    const run = (TARGET: string, SECONDS: string) =>
      promisify(execFile)(process.execPath, [...flags, ...container.args], {
        env: { TARGET, EXPECTED, SECONDS },
      })
    try {
      const { stdout } = await run(`http://127.0.0.1:${port}/`, '60')
      expect(stdout).toContain('answered 200: sluice answers')
      await expect(run('http://127.0.0.1:1/', '1')).rejects.toThrow(/did not answer/)
    } finally {
      await running.dispose()
    }
  })
})
