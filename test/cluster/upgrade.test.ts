/**
 * An installation that is upgraded under load: by helm, from one version of the charts to the next,
 * with its log on a volume and then on NATS, and with configuration served over TLS. There is no
 * kubelet: controllers and proxies are started here as the rendered pods say, and ended as it would.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { Authority } from '../support/certificates.ts'
import { gateway, TestCluster, type TestObject } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { readCrds } from '../support/crds.ts'
import { containerOf, Deployed } from '../support/deployed.ts'
import { freePort } from '../support/free-port.ts'
import { sluice } from '../support/gateway.ts'
import { runClusterCommands } from '../support/guide-commands.ts'
import { chartPath, helm } from '../support/helm.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { PodProcess, PreparedPod } from '../support/pod.ts'
import { ServiceBalancer } from '../support/service-balancer.ts'
import { SteadyLoad } from '../support/steady-load.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const namespace = 'sluice-system'
const serviceName = `sluice.${namespace}.svc.cluster.local`
const before = '0.0.9'
const parts = [...apiServerParts, 'gateway-api-crds', 'helm', 'kubectl', 'nats-server'] as const

/** A chart of this repository as it could have been a version ago, in a folder of its own. */
function earlier(folder: string, chart: string): string {
  const path = join(folder, chart)
  cpSync(chartPath(chart), path, { recursive: true })
  const file = join(path, 'Chart.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/(ersion: )0\.1\.0/g, `$1${before}`))
  return path
}

/** Definitions of a version that had no autoscaler yet. */
function withoutAutoscaler(chart: string): string {
  const file = join(chart, 'templates', 'gatewayparameters.sluice.dev.yaml')
  const definition = parse(readFileSync(file, 'utf8'))
  const { spec } = definition.spec.versions[0].schema.openAPIV3Schema.properties
  delete spec.properties.horizontalPodAutoscaler
  writeFileSync(file, stringify(definition))
  return chart
}

const object = (kind: string, name: string, spec: object, where = 'default'): TestObject => ({
  apiVersion: kind === 'HTTPRoute' ? 'gateway.networking.k8s.io/v1' : 'sluice.dev/v1alpha1',
  kind,
  metadata: { name, namespace: where },
  spec,
})

/** Settings that proxies of one machine need, together with the given ones. */
const parameters = (more: object = {}) =>
  object(
    'GatewayParameters',
    'all',
    {
      shutdown: { min: 1, max: 20 },
      rawConfig: { config: { statsAddress: '127.0.0.1:0' } },
      env: [
        { name: 'SLUICE_ADMIN_ADDRESS', value: 'off' },
        { name: 'SLUICE_READINESS_ADDRESS', value: '127.0.0.1:0' },
        { name: 'SLUICE_BIND_ADDRESS', value: '$(INSTANCE_IP)' },
      ],
      ...more,
    },
    namespace,
  )

/** The version of a route is seen in its answers. */
const route = (version: string) =>
  object('HTTPRoute', 'app', {
    parentRefs: [{ name: 'edge' }],
    rules: [
      {
        filters: [
          {
            type: 'ResponseHeaderModifier',
            responseHeaderModifier: { set: [{ name: 'x-version', value: version }] },
          },
        ],
        backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'app' }],
      },
    ],
  })

describeWithParts(parts, 'an installation', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'))
  const xds = new ServiceBalancer()
  const edge = new ServiceBalancer()
  let pods: PodProcess[] = []
  const prepared: PreparedPod[] = []
  const controllers: ControllerProcess[] = []
  let authority = new Authority()
  let cluster: TestCluster
  let deployed: Deployed
  let nats: NatsServer
  let upstream: Upstream
  let load: SteadyLoad
  let xdsPort: number
  let edgePort: number
  let port: number
  let values: object = {
    controller: {
      persistence: { enabled: true },
      xds: { tls: { enabled: true } },
      extraEnv: { SLUICE_LEASE_DURATION: '4s' },
    },
    gatewayClassParametersRefs: { agentgateway: { name: 'all', namespace } },
  }

  const chart = (verb: 'install' | 'upgrade', name: string, path: string) =>
    helm(
      [verb, name, path, `--kubeconfig=${cluster.server.kubeconfig}`, `--namespace=${namespace}`],
      name === 'sluice' ? values : {},
    )
  const sessionKey = async (): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/secrets/sluice-digest-key`
    return (await cluster.server.request('GET', path)).body.data.key
  }
  /** Creates the Secret of the xDS server, as cert-manager would. */
  const certify = async () => {
    const { certificate, key } = authority.issue([serviceName, 'localhost'])
    const path = `/api/v1/namespaces/${namespace}/secrets/sluice-xds-cert`
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { name: 'sluice-xds-cert' },
      stringData: { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate },
    }
    const type = 'application/apply-patch+yaml'
    await cluster.server.request('PATCH', `${path}?fieldManager=test&force=true`, body, type)
  }
  /** A pod of the controller's Deployment, in the Service once it is ready. */
  const controller = async (pod: string): Promise<ControllerProcess> => {
    const options = { server: cluster.server, namespace, deployment: 'sluice', ip: '127.0.0.1' }
    const claims = { 'sluice-log': folder }
    const ready = new PreparedPod({ ...options, container: 'controller', pod, claims })
    const { env, args, serviceAccount } = await ready.prepare()
    prepared.push(ready)
    const log =
      env.SLUICE_NATS === undefined
        ? { logFile: env.SLUICE_LOG_FILE ?? '' }
        : { nats: env.SLUICE_NATS }
    const started = new ControllerProcess({
      ...log,
      name: pod,
      kubeconfig: await cluster.kubeconfigOf(serviceAccount, namespace),
      env: { ...env, SLUICE_XDS_TLS_DIR: join(ready.folder, 'etc', 'xds-tls') },
      args: args.slice(1),
    })
    controllers.push(started)
    await started.start()
    const [host = '', number] = (await started.xdsAddress()).split(':')
    const target = { host, port: Number(number) }
    xds.add({ target, isReady: () => started.isReady() })
    return started
  }
  const proxy = (pod: string, ip: string): PodProcess => {
    const hosts = { [`${serviceName}:9978`]: `localhost:${xdsPort}` }
    const options = { server: cluster.server, namespace: 'default', deployment: 'edge' }
    const process = new PodProcess({ ...options, pod, ip, hosts })
    pods.push(process)
    return process
  }
  const inService = async (pod: PodProcess, host: string) => {
    const member = edge.add({ target: { host, port }, isReady: () => pod.isReady() })
    await waitFor('the proxy in its Service', () => edge.isReady(member))
  }
  const serves = (version: string) =>
    waitFor(`version ${version} of the route`, async () => {
      const { headers } = await fetch(`http://127.0.0.1:${edgePort}/`)
      return headers.get('x-version') === version
    })
  const noFailures = async () => {
    await load.more(50)
    expect(load.failures).toEqual([])
    expect([...load.statuses.keys()]).toEqual([200])
  }

  beforeAll(async () => {
    nats = await startNatsServer()
    cluster = await new TestCluster(await startApiServer()).install(
      readCrds(join(partPath('gateway-api-crds'), 'standard')),
    )
    deployed = new Deployed(cluster)
    upstream = await startUpstream()
    port = await freePort()
    xdsPort = await xds.listen()
    edgePort = await edge.listen()
    await cluster.server.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
    await certify()
    await chart('install', 'sluice-crds', withoutAutoscaler(earlier(folder, 'sluice-crds')))
    await chart('install', 'sluice', earlier(folder, 'sluice'))
    await cluster.applyAll([
      parameters(),
      object('GatewayBackend', 'app', { static: { host: '127.0.0.1', port: upstream.port } }),
      route('1'),
      gateway('edge', 'default', { listeners: [{ name: 'http', port, protocol: 'HTTP' }] }),
    ])
    await controller('sluice-1')
    await deployed.until('Deployment', 'edge')
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
    await deployed.patch('Service', 'edge/status', { status })
    const first = proxy('edge-1', '127.0.0.1')
    await first.start()
    await inService(first, '127.0.0.1')
    await serves('1')
    load = new SteadyLoad(edgePort)
  }, 150_000)
  afterAll(async () => {
    await load?.stop()
    await Promise.all([...pods, ...controllers].map((one) => one.dispose()))
    for (const one of prepared) one.remove()
    xds.close()
    edge.close()
    authority.dispose()
    await upstream?.close()
    await nats?.remove()
    await cluster?.server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('[values.controller.xds.tls.enabled] [ports.xds] configures its proxies over TLS, but not a proxy that trusts another authority', async () => {
    const [first] = pods
    expect(first?.env.SLUICE_XDS_CA_FILE).toBe(`${first?.folder}/etc/xds-tls/ca.crt`)
    expect(first?.stderr).toContain(`connected to the controller at localhost:${xdsPort}`)
    expect(first?.stderr).not.toContain('plaintext')
    const stranger = proxy('edge-x', '127.0.0.9')
    const other = new Authority()
    const file = join(stranger.folder, 'other.crt')
    writeFileSync(file, other.certificate)
    other.dispose()
    await stranger.launch({ SLUICE_XDS_CA_FILE: file })
    await stranger.said(/cannot be used: UNAVAILABLE: .*certificate/)
    expect(await stranger.isReady()).toBe(false)
    await stranger.dispose()
    pods = pods.filter((one) => one !== stranger)
  })

  it('[values.controller.xds.tls.enabled] follows a certificate of another authority, without a restart', async () => {
    const [first] = pods
    const [own] = prepared
    const old = authority
    authority = new Authority()
    await certify()
    await own?.refresh()
    const renewed = authority.certificate
    await waitFor('the authority for proxies', async () => {
      const config = await deployed.read('ConfigMap', 'edge-xds-ca')
      return config?.data?.['ca.crt'] === renewed
    })
    old.dispose()
    const second = proxy('edge-2', '127.0.0.2')
    await second.start()
    await inService(second, '127.0.0.2')
    expect(first?.stderr, 'a stream that is open goes on').not.toContain('lost the controller')
    await first?.prepared.refresh()
    await noFailures()
  })

  it('[design.helm] is upgraded under load, CRDs first: log, state, statuses and proxies are carried over', async () => {
    const [old] = controllers
    const autoscaled = parameters({ horizontalPodAutoscaler: {} })
    await expect(cluster.apply(autoscaled)).rejects.toThrow(/horizontalPodAutoscaler/)
    const kept = async () =>
      Promise.all([
        cluster.get('GatewayBackend', 'app'),
        cluster.get('HTTPRoute', 'app'),
        cluster.get('GatewayParameters', 'all', namespace),
        cluster.status('Gateway', 'edge'),
      ])
    const was = await kept()
    const key = await sessionKey()
    await runClusterCommands('docs/guides/upgrade.md', cluster.server.kubeconfig, /^helm upgrade /)
    expect(await kept()).toEqual(was)
    // One pod has the volume at a time: the old one stops first, so there is a gap without a pod.
    expect(await old?.stop()).toBe(0)
    const events = async () =>
      (await sluice('log', '-o', 'json', '--log-file', join(folder, 'events.db'))).stdout
    const history = await events()
    await cluster.apply(route('2'))
    await noFailures()
    const next = await controller('sluice-2')
    await serves('2')
    const whole = await events()
    expect(whole.startsWith(history)).toBe(true)
    const since = whole.slice(history.length)
    const observed = since.split('\n').filter((line) => line.includes('resource.applied'))
    expect(
      observed.filter((line) => !/"kind":"(HTTPRoute|Deployment|Service)"/.test(line)),
    ).toEqual([])
    expect(next.stderr).not.toMatch(/restarting the control loop|forbidden/)
    // What sessions of clients are sealed with; it is not in the log's folder, which may be lost.
    expect(await sessionKey()).toBe(key)
    expect(existsSync(join(folder, 'events.db.key'))).toBe(false)
    await cluster.apply(autoscaled)
    await deployed.until('HorizontalPodAutoscaler', 'edge')
    await noFailures()
  })

  it('upgrades its proxies to the version of the controller, under load', async () => {
    const { image } = containerOf(
      await deployed.until('Deployment', 'edge', (one) =>
        containerOf(one).image.endsWith(':0.1.0'),
      ),
    )
    expect(image).toBe('ghcr.io/sluice-dev/sluice-proxy:0.1.0')
    const third = proxy('edge-3', '127.0.0.3')
    await third.start()
    await inService(third, '127.0.0.3')
    for (const one of pods.filter((pod) => pod !== third)) expect(await one.terminate()).toBe(0)
    await runClusterCommands('docs/guides/upgrade.md', cluster.server.kubeconfig, /^kubectl wait /)
    await noFailures()
  })

  it('[design.replicas] migrates to NATS and two replicas under load, and only the lease holder writes', async () => {
    const alone = controllers.at(-1)
    values = {
      ...values,
      controller: {
        replicaCount: 2,
        nats: { url: nats.url },
        xds: { tls: { enabled: true } },
        extraEnv: { SLUICE_LEASE_DURATION: '4s' },
      },
    }
    const was = await deployed.versions('edge')
    await chart('upgrade', 'sluice', chartPath('sluice'))
    // A rolling update: the new pods are ready before the old one is stopped.
    const replicas = await Promise.all(['sluice-3', 'sluice-4'].map(controller))
    expect(await alone?.stop()).toBe(0)
    await cluster.apply(route('3'))
    await serves('3')
    const writes = () =>
      Promise.all(replicas.map((one) => one.metric('sluice_deployment_writes_total')))
    const holder = () =>
      waitFor('a holder of the lease', async () => {
        for (const one of replicas) {
          if (one.isRunning && (await one.metric('sluice_lease_held')) === 1) return one
        }
        return undefined
      })
    const first = await holder()
    // ServiceAccount, two ConfigMaps, Service, Deployment and the autoscaler.
    const each = 6
    await cluster.apply(gateway('more'))
    await deployed.until('Deployment', 'more')
    const perReplica = replicas.map((one) => (one === first ? each : 0))
    await waitFor('what the new Gateway needs', async () => (await writes()).includes(each))
    expect(await writes(), 'nothing of what is there is written again').toEqual(perReplica)
    expect(await deployed.versions('edge')).toEqual(was)
    // The holder dies; the other one takes over, and all that is deployed is as it was.
    const both = async () => [await deployed.versions('edge'), await deployed.versions('more')]
    const right = await both()
    await first.kill()
    const second = await holder()
    expect(second).not.toBe(first)
    await cluster.apply(gateway('last'))
    await deployed.until('Deployment', 'last')
    expect(await both()).toEqual(right)
    expect(await second.metric('sluice_deployment_writes_total')).toBe(each)
    await cluster.apply(route('4'))
    await serves('4')
    await noFailures()
  })
})
