import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import {
  controllerRules,
  gateway,
  route,
  service,
  TestCluster,
  type TestObject,
} from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { readCrds } from '../support/crds.ts'
import { sluice } from '../support/gateway.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const group = 'inference.networking.k8s.io'
const own = 'sluice.dev/gateway-controller'

const pool = (name: string, picker: object | undefined, namespace = 'default'): TestObject => ({
  apiVersion: `${group}/v1`,
  kind: 'InferencePool',
  metadata: { name, namespace },
  spec: {
    selector: { matchLabels: { app: name } },
    targetPorts: [{ number: 8000 }, { number: 8001 }],
    ...(picker && { endpointPickerRef: { port: { number: 80 }, ...picker } }),
  },
})

const routeTo = (
  name: string,
  parents: readonly string[],
  more: object = {},
  namespace = 'default',
): TestObject => {
  const { spec, ...rest } = route(name, 'edge', name, `${name}.example.com`, namespace)
  return {
    ...rest,
    spec: {
      ...(spec as object),
      parentRefs: parents.map((parent) => ({ name: parent, namespace: 'default' })),
      rules: [{ backendRefs: [{ group, kind: 'InferencePool', name, ...more }] }],
    },
  }
}

interface Parent {
  readonly controllerName: string
  readonly parentRef: object
  readonly conditions: readonly { readonly type: string; readonly reason: string }[]
}

describeWithParts(
  [...apiServerParts, 'gateway-api-crds', 'inference-crds'],
  'InferencePools in a cluster [inference.pool]',
  () => {
    let cluster: TestCluster
    let controller: ControllerProcess

    const parentsOf = async (name: string): Promise<readonly Parent[]> => {
      const status = await cluster.status('InferencePool', name)
      return (status as unknown as { parents?: Parent[] } | undefined)?.parents ?? []
    }
    const reasons = async (name: string, parent: string) => {
      const found = (await parentsOf(name)).find(({ parentRef }) =>
        JSON.stringify(parentRef).includes(`"name":"${parent}"`),
      )
      return found?.conditions.map(({ type, reason }) => `${type}/${reason}`).sort()
    }
    const events = async (): Promise<SluiceEvent[]> => {
      const { stdout } = await sluice('log', '--log-file', controller.logFile, '-o', 'json')
      const lines = stdout.split('\n').filter((line) => line !== '')
      return lines.map((line) => (JSON.parse(line) as { event: SluiceEvent }).event)
    }
    const start = (isEnabled: boolean, kubeconfig: string, logFile?: string) =>
      new ControllerProcess({
        kubeconfig,
        ...(logFile && { logFile }),
        env: { SLUICE_INFERENCE_EXTENSION_ENABLED: `${isEnabled}` },
      }).start()
    const makePod = async (name: string, labels: object, more: object = {}) => {
      const path = cluster.collection('Pod')
      const containers = [
        { name: 'server', image: 'example.com/server', env: [{ name: 'TOKEN', value: 'hush' }] },
      ]
      await cluster.server.request('POST', path, {
        metadata: { name, labels, ...more },
        spec: { containers },
      })
    }
    const setPod = (name: string, podIP: string, isReady: boolean) =>
      cluster.server.request('PATCH', `${cluster.path('Pod', name)}/status`, {
        status: {
          phase: 'Running',
          podIP,
          podIPs: [{ ip: podIP }],
          conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
        },
      })

    let kubeconfig: string
    beforeAll(async () => {
      cluster = await new TestCluster(await startApiServer()).install()
      // The fewest permissions: deployed objects may not be written.
      kubeconfig = await cluster.account('controller', controllerRules())
      controller = await start(true, kubeconfig)
      await cluster.applyAll([
        gateway('edge'),
        gateway('inner', 'default', {
          listeners: [{ name: 'http', port: 8081, protocol: 'HTTP', hostname: 'inner.test' }],
        }),
        service('picker'),
      ])
    }, 150_000)
    afterAll(async () => {
      await controller?.dispose()
      await cluster?.server.stop()
    })

    it('[inference.pool] finds pools whose CRD is installed after the controller started', async () => {
      await cluster.apply(routeTo('early', ['edge']))
      await cluster.condition('HTTPRoute', 'early', 'ResolvedRefs=False/BackendNotFound')
      const crds = readCrds(partPath('inference-crds'))
      await cluster.install(crds.filter((crd) => crd.spec.group === group))
      await cluster.apply(pool('early', { name: 'picker' }))
      await cluster.condition('HTTPRoute', 'early', 'ResolvedRefs=True/ResolvedRefs')
      await cluster.condition('InferencePool', 'early', 'Accepted=True/Accepted')
      await cluster.condition('InferencePool', 'early', 'ResolvedRefs=True/ResolvedRefs')
    })

    it("[inference.pool] writes the pool's status for each Gateway, with errors", async () => {
      await cluster.applyAll([
        pool('model', { name: 'absent' }),
        routeTo('model', ['edge', 'inner']),
      ])
      await cluster.condition('HTTPRoute', 'model', 'ResolvedRefs=False/BackendNotFound')
      const broken = ['Accepted/Accepted', 'ResolvedRefs/InvalidExtensionRef']
      await waitFor('entries', async () => (await parentsOf('model')).length === 2)
      expect(await reasons('model', 'edge')).toEqual(broken)
      // Its only listener takes another host.
      const refused = ['Accepted/HTTPRouteNotAccepted', 'ResolvedRefs/InvalidExtensionRef']
      expect(await reasons('model', 'inner')).toEqual(refused)
      expect((await parentsOf('model'))[0]?.parentRef).toEqual({
        group: 'gateway.networking.k8s.io',
        kind: 'Gateway',
        namespace: 'default',
        name: 'edge',
      })
      await cluster.apply(pool('model', { name: 'picker', port: { number: 81 } }))
      const port = await cluster.condition('InferencePool', 'model', 'ResolvedRefs=False')
      expect(port.message).toContain('no TCP port 81')
      await cluster.apply(pool('model', { name: 'picker' }))
      await cluster.condition('InferencePool', 'model', 'ResolvedRefs=True')
      await cluster.condition('HTTPRoute', 'model', 'ResolvedRefs=True')
      const { spec, ...rest } = pool('model', undefined)
      await cluster.server.request('PATCH', cluster.path('InferencePool', 'model'), {
        ...rest,
        spec: { ...(spec as object), endpointPickerRef: null },
      })
      await cluster.condition('InferencePool', 'model', 'Accepted=False/EndpointPickerRefMissing')
      await cluster.condition('HTTPRoute', 'model', 'ResolvedRefs=False/BackendNotFound')
    })

    it('[inference.pool] keeps entries of other controllers, and removes its own', async () => {
      const foreign = {
        controllerName: 'example.com/other',
        parentRef: { name: 'theirs' },
        conditions: [],
      }
      await cluster.applyAll([pool('shared', { name: 'picker' }), routeTo('shared', ['edge'])])
      await cluster.condition('InferencePool', 'shared', 'Accepted=True')
      const before = await parentsOf('shared')
      await cluster.server.request('PATCH', `${cluster.path('InferencePool', 'shared')}/status`, {
        status: { parents: [...before, foreign] },
      })
      await cluster.apply(routeTo('shared', ['edge', 'inner']))
      await waitFor('another entry', async () => (await parentsOf('shared')).length === 3)
      const names = async () => (await parentsOf('shared')).map((one) => one.controllerName)
      expect((await names()).filter((name) => name === own).length).toBe(2)
      await cluster.delete('HTTPRoute', 'shared')
      await waitFor('our entries to go', async () => (await parentsOf('shared')).length === 1)
      expect(await names()).toEqual(['example.com/other'])
    })

    it('[inference.pool] needs a ReferenceGrant for pools of other namespaces', async () => {
      await cluster.server.request('POST', '/api/v1/namespaces', { metadata: { name: 'models' } })
      await cluster.applyAll([
        service('picker', 'models'),
        pool('far', { name: 'picker' }, 'models'),
        routeTo('far', ['edge'], { namespace: 'models' }),
      ])
      await cluster.condition('HTTPRoute', 'far', 'ResolvedRefs=False/RefNotPermitted')
      await cluster.apply({
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'ReferenceGrant',
        metadata: { name: 'pools', namespace: 'models' },
        spec: {
          from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'default' }],
          to: [{ group, kind: 'InferencePool' }],
        },
      })
      await cluster.condition('HTTPRoute', 'far', 'ResolvedRefs=True')
      await cluster.condition('InferencePool', 'far', 'Accepted=True', 'models')
      await cluster.delete('ReferenceGrant', 'pools', 'models')
      await cluster.condition('HTTPRoute', 'far', 'ResolvedRefs=False/RefNotPermitted')
    })

    it('[inference.pool] records only the needed fields of Pods in pools, and nothing of other Pods', async () => {
      await cluster.server.request('POST', '/api/v1/namespaces/default/serviceaccounts', {
        metadata: { name: 'default' },
      })
      await makePod('early-1', { app: 'early' })
      await makePod('stranger', { app: 'stranger' })
      await setPod('early-1', '10.0.0.1', true)
      await setPod('stranger', '10.0.0.2', true)
      const pods = async () =>
        (await events()).flatMap(({ type, data }) =>
          type === 'dev.sluice.resource.applied.v1' && (data as { kind: string }).kind === 'Pod'
            ? [data as unknown as { name: string; object: { facts: object } }]
            : [],
        )
      const ready = await waitFor('the ready Pod', async () =>
        (await pods()).find(({ object }) => JSON.stringify(object.facts).includes('true')),
      )
      expect(ready.object.facts).toEqual({ address: '10.0.0.1', ready: true })
      expect(JSON.stringify(await pods())).not.toContain('hush')
      expect((await pods()).every(({ name }) => name === 'early-1')).toBe(true)
      // A change that says nothing new is no event.
      const count = (await pods()).length
      await cluster.server.request('PATCH', `${cluster.path('Pod', 'early-1')}/status`, {
        status: { message: 'busy' },
      })
      await setPod('early-1', '10.0.0.1', false)
      await waitFor('the unready Pod', async () => (await pods()).length > count)
      expect((await pods()).length).toBe(count + 1)
    })

    it('[inference.pool] [values.inferenceExtension.enabled] drops pools if the feature is turned off', async () => {
      const { logFile } = controller
      await controller.stop()
      const before = controller
      controller = await start(false, kubeconfig, logFile)
      await cluster.condition('HTTPRoute', 'early', 'ResolvedRefs=False/InvalidKind')
      await controller.stop()
      controller = await start(true, kubeconfig, logFile)
      await cluster.condition('HTTPRoute', 'early', 'ResolvedRefs=True')
      await controller.stop()
      const { code, stdout } = await sluice('replay', '--log-file', logFile)
      expect(code, stdout).toBe(0)
      await before.dispose()
    })
  },
)
