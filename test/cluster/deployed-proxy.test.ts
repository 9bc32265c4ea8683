/** Proxies as the rendered pods describe them: started as processes, upgraded under load. */
import { Agent, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../../src/testing/api-server.ts'
import { gateway, TestCluster, type TestObject } from '../../src/testing/cluster.ts'
import { ControllerProcess } from '../../src/testing/controller.ts'
import { describeWithParts } from '../../src/testing/parts.ts'
import { PodProcess } from '../../src/testing/pod.ts'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { waitFor } from '../../src/testing/wait-for.ts'

/** A Service as kube-proxy makes it: new connections go to pods that are ready. */
class Balancer {
  readonly #server: Server
  readonly #pods = new Map<PodProcess, string>()
  readonly #ready = new Set<PodProcess>()
  #turn = 0
  #timer: NodeJS.Timeout

  constructor(port: number) {
    this.#server = createServer((socket) => {
      const ready = [...this.#ready]
      const ip = this.#pods.get(ready[this.#turn++ % ready.length] as PodProcess)
      if (ip === undefined) {
        socket.destroy()
        return
      }
      const upstream = connect(port, ip)
      socket.pipe(upstream).pipe(socket)
      socket.once('error', () => upstream.destroy())
      upstream.once('error', () => socket.destroy())
    })
    this.#timer = setInterval(() => void this.#probe(), 50)
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  add(pod: PodProcess, ip: string): void {
    this.#pods.set(pod, ip)
  }

  isReady(pod: PodProcess): boolean {
    return this.#ready.has(pod)
  }

  async #probe(): Promise<void> {
    for (const pod of this.#pods.keys()) {
      if (await pod.isReady()) this.#ready.add(pod)
      else this.#ready.delete(pod)
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#server.close()
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Asks without pause on kept connections until told to stop; the statuses, and what failed. */
class Load {
  readonly statuses = new Map<number, number>()
  readonly failures: string[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 })
  readonly #port: number
  readonly #running: Promise<unknown>
  #isStopped = false

  constructor(port: number) {
    this.#port = port
    this.#running = Promise.all(Array.from({ length: 8 }, () => this.#ask()))
  }

  get count(): number {
    return [...this.statuses.values()].reduce((sum, one) => sum + one, 0)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
    this.#agent.destroy()
  }

  async #ask(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const status = await this.#once()
        this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
      } catch (error) {
        this.failures.push(String(error))
      }
    }
  }

  #once(): Promise<number> {
    return new Promise((resolve, reject) => {
      const options = { agent: this.#agent, port: this.#port, host: '127.0.0.1', path: '/' }
      const sent = request(options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0))
        response.once('error', reject)
      })
      sent.once('error', reject)
      sent.end()
    })
  }
}

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
    const balancer = new Balancer(port)
    balancer.add(old, '127.0.0.1')
    await waitFor('the old pod in the Service', () => balancer.isReady(old))
    const load = new Load(await balancer.listen())
    await waitFor('load', () => load.count > 100)
    // Another level is another pod template: a rolling upgrade starts one, then ends the other.
    await cluster.apply(parameters('info,sluice::xds=debug'))
    const config = '/api/v1/namespaces/default/configmaps/edge'
    await waitFor('the new configuration', async () => {
      const { body } = await cluster.server.request('GET', config)
      return body.data['config.yaml'].includes('sluice::xds=debug')
    })
    const fresh = await pod('edge-2', '127.0.0.2')
    balancer.add(fresh, '127.0.0.2')
    await waitFor('the new pod in the Service', () => balancer.isReady(fresh))
    expect(await old.terminate()).toBe(0)
    const before = load.count
    await waitFor('load on the new pod alone', () => load.count > before + 100)
    await load.stop()
    balancer.close()
    expect(load.failures).toEqual([])
    expect([...load.statuses.keys()]).toEqual([200])
  })
})
