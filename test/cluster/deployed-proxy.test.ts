/** Proxies as the rendered pods describe them: started as processes, upgraded under load. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { gateway, TestCluster, type TestObject } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { freePort } from '../support/free-port.ts'
import { describeWithParts } from '../support/parts.ts'
import { PodProcess } from '../support/pod.ts'
import { ServiceBalancer } from '../support/service-balancer.ts'
import { SteadyLoad } from '../support/steady-load.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

/** As far as these tests look into one. */
interface PodTemplate {
  readonly spec: {
    readonly terminationGracePeriodSeconds: number
    readonly containers: readonly {
      readonly env: readonly { readonly name: string; readonly value?: string }[]
    }[]
  }
}

describeWithParts([...apiServerParts, 'gateway-api-crds'], 'a deployed proxy', () => {
  let cluster: TestCluster
  let controller: ControllerProcess
  let upstream: Upstream
  let port: number
  let readyPort: number
  const pods: PodProcess[] = []
  /** Answers that requests for /slow wait for. */
  const slow: (() => void)[] = []

  const own = (kind: string, name: string, spec: object): TestObject => ({
    apiVersion: kind === 'HTTPRoute' ? 'gateway.networking.k8s.io/v1' : 'sluice.dev/v1alpha1',
    kind,
    metadata: { name, namespace: 'default' },
    spec,
  })
  const parameters = (level: string, more: object = {}) =>
    own('GatewayParameters', 'local', {
      logging: { level, format: 'json' },
      shutdown: { min: 1, max: 20 },
      rawConfig: {
        config: { statsAddress: '127.0.0.1:0', logging: { level: 'trace', format: 'text' } },
      },
      // Pods have addresses of their own; here they share those of the machine.
      env: [
        { name: 'SLUICE_ADMIN_ADDRESS', value: 'off' },
        { name: 'SLUICE_READINESS_ADDRESS', value: '127.0.0.1:0' },
        { name: 'SLUICE_BIND_ADDRESS', value: '$(INSTANCE_IP)' },
      ],
      ...more,
    })
  const deploymentOf = async () => {
    const path = '/apis/apps/v1/namespaces/default/deployments/edge'
    return (await cluster.server.request('GET', path)).body
  }
  /** Waits for a pod template that says something. */
  const template = (holds: (spec: PodTemplate) => boolean) =>
    waitFor('the pod template', async () => holds((await deploymentOf()).spec.template))
  const podOf = async (name: string, ip: string): Promise<PodProcess> => {
    const process = new PodProcess({
      server: cluster.server,
      namespace: 'default',
      deployment: 'edge',
      pod: name,
      ip,
      hosts: { 'sluice.default.svc.cluster.local:9978': await controller.xdsAddress() },
    })
    pods.push(process)
    return process
  }
  const pod = async (name: string, ip: string) => (await podOf(name, ip)).start()

  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install()
    upstream = await startUpstream('app', ({ path }, response) => {
      if (path === '/slow') slow.push(() => void response.end('late'))
      else response.end('at once')
    })
    port = await freePort()
    readyPort = await freePort()
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

  it('starts with the settings of its pod, serves the Gateway, and makes it Programmed [GatewayParameters.rawConfig] [ParametersLogging.format]', async () => {
    const first = await pod('edge-1', '127.0.0.1')
    expect(first.args).toEqual(['proxy', '--config', `${first.folder}/config/config.yaml`])
    await waitFor('readiness', () => first.isReady())
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    expect(answer.status).toBe(200)
    await cluster.condition('Gateway', 'edge', 'Programmed=True')
    // The typed field takes precedence over rawConfig: both logs are JSON.
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

  it('accepts for the minimum, finishes requests in flight, and closes the rest at the maximum [ShutdownSpec.min] [ShutdownSpec.max]', async () => {
    const shutdown = { min: 1, max: 3 }
    await cluster.apply(parameters('info', { shutdown }))
    await template(({ spec }) => spec.terminationGracePeriodSeconds === 3)
    const { spec } = (await deploymentOf()).spec.template
    expect(spec.containers[0].env).toEqual(
      expect.arrayContaining([
        { name: 'CONNECTION_MIN_TERMINATION_DEADLINE', value: '1s' },
        { name: 'TERMINATION_GRACE_PERIOD_SECONDS', value: '3' },
      ]),
    )
    const last = await pod('edge-3', '127.0.0.3')
    await waitFor('readiness', () => last.isReady())
    const ask = (path: string) => fetch(`http://127.0.0.3:${port}${path}`)
    const underWay = ask('/slow')
    const stuck = ask('/slow')
    await waitFor('two requests under way', () => slow.length === 2)
    const ended = last.terminate()
    await last.said(/draining/)
    expect(await last.isReady()).toBe(false)
    // Endpoints are taken out of rotation a while after the signal: until then all is served.
    const late = await ask('/')
    expect([late.status, late.headers.get('connection')]).toEqual([200, 'close'])
    await waitFor('the end of accepting', () =>
      ask('/')
        .then(() => false)
        .catch(() => true),
    )
    slow[0]?.()
    expect(await (await underWay).text()).toBe('late')
    await expect(stuck.then((response) => response.text())).rejects.toThrow()
    expect(await ended, 'it ends by itself, and is not killed').toBe(0)
  })

  it('keeps serving and following routes while its parameters are invalid', async () => {
    const [, running] = pods
    const before = (await deploymentOf()).metadata.resourceVersion
    const nameless = { spec: { template: { spec: { containers: [{ image: 'x' }] } } } }
    await cluster.apply(parameters('warn', { deployment: nameless }))
    await cluster.condition('Gateway', 'edge', 'Accepted=False/InvalidParameters')
    expect((await deploymentOf()).metadata.resourceVersion).toBe(before)
    const hello = {
      type: 'ResponseHeaderModifier',
      responseHeaderModifier: { set: [] as object[] },
    }
    hello.responseHeaderModifier.set.push({ name: 'x-changed', value: 'yes' })
    await cluster.apply(
      own('HTTPRoute', 'app', {
        parentRefs: [{ name: 'edge' }],
        rules: [
          {
            filters: [hello],
            backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'app' }],
          },
        ],
      }),
    )
    await waitFor('the changed route', async () => {
      const { headers } = await fetch(`http://127.0.0.2:${port}/`)
      return headers.get('x-changed') === 'yes'
    })
    expect(await running?.isReady()).toBe(true)
    await cluster.apply(parameters('warn'))
    await cluster.condition('Gateway', 'edge', 'Accepted=True')
    await template(({ spec }) => spec.terminationGracePeriodSeconds === 20)
  })

  it('logs at the configured level, for everything and by module [ParametersLogging.level] [GatewayParameters.logging] [GatewayParameters.env]', async () => {
    const env = [
      { name: 'SLUICE_ADMIN_ADDRESS', value: 'off' },
      { name: 'READY', value: `127.0.0.1:${readyPort}` },
      { name: 'SLUICE_READINESS_ADDRESS', value: '$(READY)' },
      { name: 'SLUICE_BIND_ADDRESS', value: '$(INSTANCE_IP)' },
      { name: 'SLUICE_ACCESS_LOG_PREFIX', value: '$$(READY)' },
    ]
    const told = async (level: string, name: string, ip: string) => {
      await cluster.apply(parameters(level, { env }))
      await template(({ spec }) =>
        Boolean(
          spec.containers[0]?.env.some((one) => one.name === 'RUST_LOG' && one.value === level),
        ),
      )
      const quiet = await podOf(name, ip)
      await quiet.launch()
      const ready = `http://127.0.0.1:${readyPort}/healthz/ready`
      await waitFor('readiness', () =>
        fetch(ready)
          .then(({ ok }) => ok)
          .catch(() => false),
      )
      expect(quiet.env.SLUICE_ACCESS_LOG_PREFIX).toBe('$(READY)')
      const lines = quiet.stderr.trim().split('\n').filter(Boolean)
      await quiet.dispose()
      return lines.map((line) => JSON.parse(line) as { level: string; module: string })
    }
    expect(await told('error', 'edge-4', '127.0.0.4')).toEqual([])
    const some = await told('off,sluice::xds=trace', 'edge-5', '127.0.0.5')
    expect(new Set(some.map(({ module }) => module))).toEqual(new Set(['sluice::xds']))
    const levels = new Set(some.map(({ level }) => level))
    expect(levels).toEqual(new Set(['info', 'debug', 'trace']))
  })
})
