import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import {
  controllerRules,
  gateway,
  gatewayCrds,
  route,
  service,
  TestCluster,
} from '../support/cluster.ts'
import { ControllerProcess, type ControllerProcessOptions } from '../support/controller.ts'
import { sluice } from '../support/gateway.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUnsteadyProxy } from '../support/unsteady-proxy.ts'
import { waitFor } from '../support/wait-for.ts'

describeWithParts([...apiServerParts, 'gateway-api-crds'], 'a watching controller', () => {
  let cluster: TestCluster
  let controller: ControllerProcess | undefined
  const make = (options: Partial<ControllerProcessOptions> = {}) => {
    controller = new ControllerProcess({ kubeconfig: cluster.server.kubeconfig, ...options })
    return controller
  }

  /** The definitions, once; the first test is about the time before. */
  let installed: Promise<unknown> | undefined
  const prepared = async () => {
    installed ??= cluster.install()
    await installed
    await cluster.applyAll([service('shop'), gateway('edge')])
  }

  /** The HTTPRoutes that a controller's log has now. */
  const recorded = async ({ logFile }: ControllerProcess) => {
    const { stdout } = await sluice('status', '--log-file', logFile, '-o', 'json')
    const { objects } = JSON.parse(stdout) as { objects: { kind: string; name: string }[] }
    return objects.filter(({ kind }) => kind === 'HTTPRoute')
  }

  beforeAll(async () => {
    cluster = new TestCluster(await startApiServer())
  }, 150_000)
  afterEach(async () => {
    // An orderly end gives up the lease.
    await controller?.stop()
    await controller?.dispose()
    controller = undefined
  })
  afterAll(() => cluster?.server.stop())

  it('starts before the CRDs are installed, and follows them once they are', async () => {
    await make().start()
    await prepared()
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True')
    await cluster.apply(route('shop', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'shop', 'Accepted=True')
  })

  it('reports whether it supports the Gateway API version of the cluster', async () => {
    await prepared()
    await make().start()
    await cluster.condition('GatewayClass', 'agentgateway', 'SupportedVersion=True')
    const name = 'udproutes.gateway.networking.k8s.io'
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`
    const install = (version: string) => {
      const annotations = { 'gateway.networking.k8s.io/bundle-version': version }
      return cluster.server.request('PATCH', path, { metadata: { annotations } })
    }
    await install('v1.4.0')
    await cluster.condition('GatewayClass', 'agentgateway', 'SupportedVersion=False')
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True')
    await install('v1.6.1')
    await cluster.condition('GatewayClass', 'agentgateway', 'SupportedVersion=True')
  })

  it('continues if a CRD is removed, and follows it again once it is back', async () => {
    await prepared()
    const one = await make().start()
    const definition = gatewayCrds().find(({ spec }) => spec.names.kind === 'UDPRoute')
    if (definition === undefined) throw new Error('no UDPRoute')
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition.metadata.name}`
    await cluster.server.request('DELETE', path)
    await waitFor('an absent kind', async () => {
      const absent = await one.metric('sluice_watch_up', 'kind="UDPRoute",state="absent"')
      return absent === 1
    })
    expect((await one.get('health', '/readyz')).status).toBe(200)
    await cluster.install([definition])
    await waitFor('the kind again', async () => {
      return (await one.metric('sluice_watch_up', 'kind="UDPRoute",state="following"')) === 1
    })
  })

  it('is not ready while a kind is forbidden, reports it, and continues once it is permitted', async () => {
    await prepared()
    const kubeconfig = await cluster.account('limited', controllerRules(['httproutes']))
    const one = await make({ kubeconfig }).launch()
    await one.said(/cannot watch httproutes: .*forbidden/)
    // Between two tries it says that the kind is being listed.
    await waitFor('a readiness that names the kind', async () => {
      const { status, text } = await one.get('health', '/readyz')
      return status === 503 && /httproutes: .*forbidden/.test(text)
    })
    await cluster.setRules('limited', controllerRules())
    await one.said(/^ready$/m)
    await cluster.apply(route('permitted', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'permitted', 'Accepted=True')
  })

  it('[values.discoveryNamespaceSelectors] reads only the namespaces that a selector matches, and follows changes of labels', async () => {
    await prepared()
    const namespace = (name: string, labels: object) =>
      cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
    await namespace('in', { team: 'a' })
    await namespace('out', { team: 'b' })
    const selectors = [
      { matchLabels: { team: 'a' } },
      { matchExpressions: [{ key: 'tier', operator: 'In', values: ['front'] }] },
    ]
    const env = { SLUICE_DISCOVERY_NAMESPACE_SELECTORS: JSON.stringify(selectors) }
    await make({ env }).start()
    // Two of the Gateway's own namespace, which other cases may have made already.
    for (const name of ['shop', 'permitted']) await cluster.apply(route(name, 'edge', 'shop'))
    for (const one of ['in', 'out']) {
      await cluster.apply(service('shop', one))
      await cluster.apply(route('inside', 'edge', 'shop', 'inside.example.com', one))
    }
    await cluster.condition('HTTPRoute', 'inside', 'Accepted=True', 'in')
    expect((await cluster.status('HTTPRoute', 'inside', 'out'))?.parents).toBeUndefined()
    const attached = (count: number) =>
      waitFor(`${count} routes`, async () => {
        const status = (await cluster.status('Gateway', 'edge')) as {
          listeners?: { attachedRoutes: number }[]
        }
        return status.listeners?.[0]?.attachedRoutes === count
      })
    await attached(3)
    await namespace('out', { team: 'b', tier: 'front' })
    await cluster.condition('HTTPRoute', 'inside', 'Accepted=True', 'out')
    await attached(4)
    await namespace('in', { team: 'c' })
    await attached(3)
    await namespace('in', { team: 'a' })
    await attached(4)
  })

  it('keeps reading a Service that one route drops while another starts to use it', async () => {
    await prepared()
    await make().start()
    await cluster.apply(route('turn-0', 'edge', 'shop'))
    for (let turn = 1; turn <= 20; turn++) {
      const gone = cluster.delete('HTTPRoute', `turn-${turn - 1}`)
      await cluster.apply(route(`turn-${turn}`, 'edge', 'shop'))
      await gone
      await cluster.condition('HTTPRoute', `turn-${turn}`, 'ResolvedRefs=True')
    }
    await cluster.delete('HTTPRoute', 'turn-20')
  })

  it('applies the newest version if events arrive twice, late and out of order', async () => {
    await prepared()
    const unsteady = await startUnsteadyProxy(cluster.server, ['/httproutes'])
    const one = await make({ kubeconfig: unsteady.kubeconfig }).start()
    const count = 30
    for (let n = 0; n < count; n++) {
      await cluster.apply(route(`u${n}`, 'edge', 'shop'))
      await cluster.apply(route(`u${n}`, 'edge', 'absent'))
      if (n % 3 === 0) await cluster.delete('HTTPRoute', `u${n}`)
    }
    for (let n = 0; n < count; n++) {
      if (n % 3 === 0) continue
      await cluster.condition('HTTPRoute', `u${n}`, 'ResolvedRefs=False/BackendNotFound')
    }
    expect(unsteady.mangled()).toBeGreaterThan(count)
    const routes = await recorded(one)
    expect(routes.filter(({ name }) => name.startsWith('u'))).toHaveLength(20)
    unsteady.close()
  })

  it('lists in pages, and starts again if a page has expired', async () => {
    await prepared()
    const names = Array.from({ length: 25 }, (_, n) => `p${n}`)
    for (const name of names) await cluster.apply(route(name, 'edge', 'shop'))
    const unsteady = await startUnsteadyProxy(cluster.server, ['/httproutes'], 10)
    unsteady.expirePage()
    const one = await make({ kubeconfig: unsteady.kubeconfig }).start()
    // One page that had expired, then the second and the third at least.
    expect(unsteady.continued()).toBeGreaterThanOrEqual(3)
    const known = (await recorded(one)).map(({ name }) => name)
    expect(known).toEqual(expect.arrayContaining(names))
    unsteady.close()
  })

  it('lists again after 410, and records what was created, changed and deleted meanwhile', async () => {
    await prepared()
    await cluster.applyAll(['gone', 'changed'].map((name) => route(name, 'edge', 'shop')))
    const unsteady = await startUnsteadyProxy(cluster.server, ['/httproutes'])
    const one = await make({ kubeconfig: unsteady.kubeconfig }).start()
    await cluster.condition('HTTPRoute', 'gone', 'Accepted=True')
    unsteady.loseEvents()
    await cluster.delete('HTTPRoute', 'gone')
    await cluster.applyAll([route('changed', 'edge', 'absent'), route('made', 'edge', 'shop')])
    unsteady.expireWatches()
    await cluster.condition('HTTPRoute', 'changed', 'ResolvedRefs=False/BackendNotFound')
    await cluster.condition('HTTPRoute', 'made', 'Accepted=True')
    await waitFor('the end of the deleted route', async () =>
      (await recorded(one)).every(({ name }) => name !== 'gone'),
    )
    const { stdout } = await sluice('log', '--log-file', one.logFile, '-o', 'json')
    expect(stdout).toMatch(
      /"name":"gone"[^\n]*"cause":"relist"|"cause":"relist"[^\n]*"name":"gone"/,
    )
    unsteady.close()
  })
})
