/** The Kubernetes Events that a controller writes, in a real API server. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KubeClient, openCluster } from '../../src/control/kube/index.ts'
import { EventRecorder, type ObjectEvent } from '../../src/control/status/event-recorder.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { gateway, type KubernetesEvent, route, service, TestCluster } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { BareClient, edgeNode } from '../support/xds-client.ts'

const parts = [...apiServerParts, 'gateway-api-crds', 'nats-server', 'kubectl'] as const

const summaryOf = ({ type, reason, note, series }: KubernetesEvent) =>
  `${type} ${reason} x${series?.count ?? 1}: ${note}`

describeWithParts(parts, 'Kubernetes Events', () => {
  let cluster: TestCluster
  let nats: NatsServer
  let replicas: ControllerProcess[] = []

  const launch = (name: string, env: Record<string, string> = {}) => {
    const { kubeconfig } = cluster.server
    return new ControllerProcess({ kubeconfig, nats: nats.url, name, env }).start()
  }
  const eventsOf = async (kind: string, name: string) =>
    cluster.events((await cluster.get(kind, name)).metadata.uid)
  /** Waits until the events about an object have these summaries. */
  const expectEvents = (kind: string, name: string, expected: readonly string[]) =>
    waitFor(`events of ${kind} ${name}`, async () => {
      const summaries = (await eventsOf(kind, name)).map(summaryOf)
      return JSON.stringify(summaries) === JSON.stringify(expected) || undefined
    }).catch(async (error) => {
      const summaries = (await eventsOf(kind, name)).map(summaryOf)
      throw new Error(`${error.message}; there are ${JSON.stringify(summaries, null, 1)}`)
    })
  const leader = () =>
    waitFor('a leader', async () => {
      for (const one of replicas) {
        if (one.isRunning && (await one.metric('sluice_lease_held')) === 1) return one
      }
      return undefined
    })
  /** Makes a new object cause an event, and waits for it: earlier events have been written by then. */
  const writeSentinel = async (name: string) => {
    await cluster.apply(route(name, 'edge', 'nowhere'))
    await expectEvents('HTTPRoute', name, [unresolved('nowhere')])
  }
  const unresolved = (backend: string, count = 1) =>
    `Warning BackendNotFound x${count}: ResolvedRefs is False for parent Gateway default/edge: Service default/${backend} does not exist`

  beforeAll(async () => {
    nats = await startNatsServer()
    cluster = await new TestCluster(await startApiServer()).install()
    await cluster.applyAll([service('shop'), service('fragile'), gateway('edge')])
    replicas = await Promise.all(['a', 'b'].map((name) => launch(name)))
  }, 150_000)
  afterAll(async () => {
    await Promise.all(replicas.map((one) => one.dispose()))
    await nats?.remove()
    await cluster?.server.stop()
  })

  it('report that a Gateway is accepted, waits for proxies, and is programmed', async () => {
    await cluster.condition('Gateway', 'edge', 'Programmed=False/Pending')
    const accepted = 'Normal Accepted x1: Accepted is True'
    const pending =
      'Normal Pending x1: Programmed is False: no proxy has acknowledged this configuration yet'
    await expectEvents('Gateway', 'edge', [accepted, pending])
    const node = { ...edgeNode, gateway: { namespace: 'default', name: 'edge' } }
    const client = new BareClient({ address: await (await leader()).xdsAddress() }).hello(node)
    client.say({ nonce: (await client.next()).nonce })
    const programmed = await waitFor('Programmed', async () =>
      (await eventsOf('Gateway', 'edge')).find(({ reason }) => reason === 'Programmed'),
    )
    expect(programmed).toMatchObject({ type: 'Normal', action: 'Program' })
    client.close()
  })

  it('do not exist for a new route that is in order', async () => {
    await cluster.apply(route('fine', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'fine', 'ResolvedRefs=True')
    await writeSentinel('after-fine')
    expect(await eventsOf('HTTPRoute', 'fine')).toEqual([])
  })

  it('count a change that repeats, and name the replica that leads', async () => {
    const resolved = (count: number) =>
      `Normal ResolvedRefs x${count}: ResolvedRefs is True for parent Gateway default/edge`
    await cluster.apply(route('flaps', 'edge', 'fragile'))
    await cluster.condition('HTTPRoute', 'flaps', 'ResolvedRefs=True')
    for (const count of [1, 2]) {
      await cluster.delete('Service', 'fragile')
      await cluster.condition('HTTPRoute', 'flaps', 'ResolvedRefs=False')
      await cluster.apply(service('fragile'))
      await cluster.condition('HTTPRoute', 'flaps', 'ResolvedRefs=True')
      await expectEvents('HTTPRoute', 'flaps', [unresolved('fragile', count), resolved(count)])
    }
    const [first] = await eventsOf('HTTPRoute', 'flaps')
    const holder = (await leader()) === replicas[0] ? 'a' : 'b'
    expect(first).toMatchObject({
      action: 'ResolveRefs',
      reportingController: 'sluice.dev/gateway-controller',
      reportingInstance: holder,
      regarding: {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'HTTPRoute',
        namespace: 'default',
        name: 'flaps',
      },
    })
  })

  it('warn of a policy that is not in force, and report when it is', async () => {
    await cluster.apply({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayPolicy',
      metadata: { name: 'early' },
      spec: {
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'guarded' }],
        traffic: { timeouts: { request: '5s' } },
      },
    })
    const attached = async () =>
      (await eventsOf('GatewayPolicy', 'early'))
        .filter(({ action }) => action === 'Attach')
        .map(summaryOf)
    const expectAttached = (start: string) =>
      waitFor(start, async () => (await attached()).some((summary) => summary.startsWith(start)))
    await expectAttached('Warning Pending x1: Attached is False')
    await cluster.apply(route('guarded', 'edge', 'shop'))
    await expectAttached('Normal Attached x1: Attached is True')
  })

  it('are shown by kubectl describe', async () => {
    const { stdout } = await promisify(execFile)(partPath('kubectl'), [
      ...['--kubeconfig', cluster.server.kubeconfig, 'describe', 'httproute', 'flaps'],
    ])
    expect(stdout).toMatch(
      /Warning +BackendNotFound +\S+ \(x2 over \S+\) +sluice\.dev\/gateway-controller +ResolvedRefs is False for parent Gateway default\/edge: Service default\/fragile does not exist/,
    )
  })

  it('are not written again by a new leader, nor when a replica starts and reads the log', async () => {
    const names = ['edge', 'flaps', 'fine', 'after-fine']
    const all = () =>
      Promise.all(names.map((name) => eventsOf(name === 'edge' ? 'Gateway' : 'HTTPRoute', name)))
    const before = await all()
    const first = await leader()
    await first.kill()
    const second = await waitFor('another leader', async () => {
      const one = await leader()
      return one === first ? undefined : one
    })
    await writeSentinel('after-takeover')
    expect(await all()).toEqual(before)
    const index = replicas.indexOf(first)
    await first.dispose()
    replicas[index] = await launch('c')
    await second.stop()
    await writeSentinel('after-restart')
    expect(await all()).toEqual(before)
  })

  it('are not written if they are disabled', async () => {
    await Promise.all(replicas.map((one) => one.dispose()))
    replicas = [await launch('quiet', { SLUICE_KUBERNETES_EVENTS: 'false' })]
    await cluster.apply(route('quiet', 'edge', 'missing'))
    await cluster.condition('HTTPRoute', 'quiet', 'ResolvedRefs=False')
    await Promise.all(replicas.map((one) => one.dispose()))
    replicas = [await launch('loud')]
    await writeSentinel('after-quiet')
    expect(await eventsOf('HTTPRoute', 'quiet')).toEqual([])
  })

  it('are limited for each object and reason, and long notes are shortened', async () => {
    const notices: string[] = []
    const recorder = new EventRecorder({
      client: new KubeClient(openCluster(cluster.server.kubeconfig)),
      replica: 'test',
      isWriting: () => true,
      onNotice: (text) => notices.push(text),
    })
    const { metadata } = await cluster.get('HTTPRoute', 'fine')
    const event: ObjectEvent = {
      regarding: {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'HTTPRoute',
        namespace: 'default',
        name: 'fine',
        uid: metadata.uid,
      },
      type: 'Warning',
      action: 'Accept',
      reason: 'Flapping',
      note: '\u{20ac}'.repeat(1000),
    }
    for (let n = 0; n < 40; n++) recorder.record(event)
    recorder.record({ ...event, reason: 'Other' })
    const written = await waitFor('the last event', async () => {
      const found = await cluster.events(metadata.uid)
      return found.some(({ reason }) => reason === 'Other') ? found : undefined
    })
    await recorder.close()
    expect(notices).toEqual([])
    expect(written.map(({ reason, series }) => [reason, series?.count])).toEqual([
      ['Flapping', 25],
      ['Other', undefined],
    ])
    expect(Buffer.byteLength(written[0]?.note ?? '')).toBeGreaterThan(1000)
    expect(written[0]?.note).toMatch(/^\u{20ac}+\u2026$/u)
  })
})
