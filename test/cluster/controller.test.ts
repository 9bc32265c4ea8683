import { afterAll, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../../src/testing/api-server.ts'
import { gateway, route, service, TestCluster } from '../../src/testing/cluster.ts'
import { ControllerProcess } from '../../src/testing/controller.ts'
import { describeWithParts } from '../../src/testing/parts.ts'

describeWithParts([...apiServerParts, 'gateway-api-crds'], 'a controller in a cluster', () => {
  let cluster: TestCluster
  let controller: ControllerProcess
  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install()
    controller = await new ControllerProcess({ kubeconfig: cluster.server.kubeconfig }).start()
  }, 150_000)
  afterAll(async () => {
    await controller?.dispose()
    await cluster?.server.stop()
  })

  it('makes the default GatewayClass and accepts it', async () => {
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True/Accepted')
    const { spec, status } = await cluster.get('GatewayClass', 'agentgateway')
    expect(spec.controllerName).toBe('sluice.dev/gateway-controller')
    expect(status.supportedFeatures.map(({ name }: { name: string }) => name)).toContain(
      'HTTPRoute',
    )
    await cluster.delete('GatewayClass', 'agentgateway')
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True/Accepted')
  })

  it('writes the statuses of a Gateway and a route', async () => {
    await cluster.applyAll([gateway('edge'), service('shop'), route('shop', 'edge', 'shop')])
    await cluster.condition('HTTPRoute', 'shop', 'Accepted=True/Accepted')
    await cluster.condition('HTTPRoute', 'shop', 'ResolvedRefs=True')
    await cluster.condition('Gateway', 'edge', 'Accepted=True/Accepted')
    await cluster.condition('Gateway', 'edge', 'Programmed=False')
  })
})
