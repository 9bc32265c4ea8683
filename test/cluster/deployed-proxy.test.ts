/** Proxies as the rendered pods describe them: started as processes, upgraded under load. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../../src/testing/api-server.ts'
import { gateway, TestCluster, type TestObject } from '../../src/testing/cluster.ts'
import { ControllerProcess } from '../../src/testing/controller.ts'
import { freePort } from '../../src/testing/free-port.ts'
import { describeWithParts } from '../../src/testing/parts.ts'
import { PodProcess } from '../../src/testing/pod.ts'
import { ServiceBalancer } from '../../src/testing/service-balancer.ts'
import { SteadyLoad } from '../../src/testing/steady-load.ts'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { waitFor } from '../../src/testing/wait-for.ts'

describeWithParts([...apiServerParts, 'gateway-api-crds'], 'a proxy that was deployed', () => {
  let cluster: TestCluster
  let controller: ControllerProcess
  let upstream: Upstream
  let port: number
  const pods: PodProcess[] = []

  const own = (kind: string, name: string, spec: object): TestObject => ({
    apiVersion: kind === 'HTTPRoute' ? 'gateway.networking.k8s.io/v1' : 'sluice.dev/v1alpha1',
    kind,
    metadata: { name, namespace: 'default' },
    spec,
  })
  const parameters = (level: string) =>
    own('GatewayParameters', 'local', {
      logging: { level, format: 'json' },
      shutdown: { min: 1, max: 20 },
      rawConfig: { config: { statsAddress: '127.0.0.1:0', logging: { format: 'text' } } },
      // Pods have addresses of their own; here they share those of the machine.
      env: [
        { name: 'SLUICE_ADMIN_ADDRESS', value: 'off' },
        { name: 'SLUICE_READINESS_ADDRESS', value: '127.0.0.1:0' },
        { name: 'SLUICE_BIND_ADDRESS', value: '$(INSTANCE_IP)' },
      ],
    })
  const pod = async (name: string, ip: string): Promise<PodProcess> => {
    const process = new PodProcess({
      server: cluster.server,
      namespace: 'default',
      deployment: 'edge',
      pod: name,
      ip,
      hosts: { 'sluice.default.svc.cluster.local:9978': await controller.xdsAddress() },
    })
    pods.push(process)
    return process.start()
  }

  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install()
    upstream = await startUpstream()
    port = await freePort()
    controller = await new ControllerProcess({
      kubeconfig: cluster.server.kubeconfig,
      env: { SLUICE_XDS_SERVICE_NAME: 'sluice', POD_NAMESPACE: 'default' },
    }).start()
    await cluster.apply(parameters('info'))
    await cluster.apply(
      own('GatewayBackend', 'app', { static: { host: '127.0.0.1', port: upstream.port } }),
    )
    await cluster.apply(
      own('HTTPRoute', 'app', {
        parentRefs: [{ name: 'edge' }],
        rules: [{ backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'app' }] }],
      }),
    )
    await cluster.apply(
      gateway('edge', 'default', {
        infrastructure: {
          parametersRef: { group: 'sluice.dev', kind: 'GatewayParameters', name: 'local' },
        },
        listeners: [{ name: 'http', port, protocol: 'HTTP' }],
      }),
    )
    const deployment = '/apis/apps/v1/namespaces/default/deployments/edge'
    await waitFor('the Deployment', async () => {
      return (await cluster.server.request('GET', deployment)).status === 200
    })
    const ingress = { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } }
    await cluster.server.request(
      'PATCH',
      '/api/v1/namespaces/default/services/edge/status',
      ingress,
    )
  }, 150_000)
  afterAll(async () => {
    await Promise.all(pods.map((one) => one.dispose()))
    await controller?.dispose()
    await upstream?.close()
    await cluster?.server.stop()
  })

  it('starts as its pod says, serves the Gateway, and makes it programmed [GatewayParameters.rawConfig] [ParametersLogging.format]', async () => {
    const first = await pod('edge-1', '127.0.0.1')
    expect(first.args).toEqual(['proxy', '--config', `${first.folder}/config/config.yaml`])
    await waitFor('readiness', () => first.isReady())
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    expect(answer.status).toBe(200)
    await cluster.condition('Gateway', 'edge', 'Programmed=True')
    // The typed field wins over rawConfig: what it tells, and of requests, is JSON.
    for (const line of first.stderr.trim().split('\n')) {
      expect(JSON.parse(line)).toMatchObject({
        level: expect.any(String),
        time: expect.any(String),
      })
    }
    await waitFor('a line of the access log', () => first.stdout.includes('\n'))
    expect(JSON.parse(first.stdout.split('\n')[0] ?? '')).toBeTypeOf('object')
  })

  it('is upgraded under load without a failed request [GatewayParameters.shutdown] [ShutdownSpec.min] [ShutdownSpec.max]', async () => {
    const [old] = pods
    if (old === undefined) throw new Error('no pod')
    const balancer = new ServiceBalancer()
    const inService = async (one: PodProcess, host: string) => {
      const pod = balancer.add({ target: { host, port }, isReady: () => one.isReady() })
      await waitFor('the pod in the Service', () => balancer.isReady(pod))
    }
    await inService(old, '127.0.0.1')
    const load = new SteadyLoad(await balancer.listen())
    await load.more(100)
    // Another level is another pod template: a rolling upgrade starts one, then ends the other.
    await cluster.apply(parameters('info,sluice::xds=debug'))
    const config = '/api/v1/namespaces/default/configmaps/edge'
    await waitFor('the new configuration', async () => {
      const { body } = await cluster.server.request('GET', config)
      return body.data['config.yaml'].includes('sluice::xds=debug')
    })
    await inService(await pod('edge-2', '127.0.0.2'), '127.0.0.2')
    expect(await old.terminate()).toBe(0)
    await load.more(100)
    await load.stop()
    balancer.close()
    expect(load.failures).toEqual([])
    expect([...load.statuses.keys()]).toEqual([200])
  })
})
