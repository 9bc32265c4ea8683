import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ApiServer, apiServerParts, startApiServer } from '../../src/testing/api-server.ts'
import { installCrds, readCrds } from '../../src/testing/crds.ts'
import { describeWithParts, partPath } from '../../src/testing/parts.ts'

describeWithParts(
  [...apiServerParts, 'gateway-api-crds', 'inference-crds'],
  'a cluster with the Gateway API and its inference extension',
  () => {
    let server: ApiServer
    beforeAll(async () => {
      server = await startApiServer()
      await installCrds(server, readCrds(join(partPath('gateway-api-crds'), 'standard')))
      const inference = readCrds(partPath('inference-crds'))
      await installCrds(
        server,
        inference.filter((crd) => crd.spec.group === 'inference.networking.k8s.io'),
      )
    }, 150_000)
    afterAll(() => server?.stop())

    it.each([
      ['gateway.networking.k8s.io/v1', 'gatewayclasses'],
      ['gateway.networking.k8s.io/v1', 'gateways'],
      ['gateway.networking.k8s.io/v1', 'listenersets'],
      ['gateway.networking.k8s.io/v1', 'httproutes'],
      ['gateway.networking.k8s.io/v1', 'grpcroutes'],
      ['gateway.networking.k8s.io/v1', 'tlsroutes'],
      ['gateway.networking.k8s.io/v1', 'tcproutes'],
      ['gateway.networking.k8s.io/v1', 'udproutes'],
      ['gateway.networking.k8s.io/v1', 'backendtlspolicies'],
      ['gateway.networking.k8s.io/v1', 'referencegrants'],
      ['inference.networking.k8s.io/v1', 'inferencepools'],
    ])('serves %s %s', async (version, plural) => {
      const { status, body } = await server.request('GET', `/apis/${version}/${plural}`)
      expect(status).toBe(200)
      expect(body).toMatchObject({ apiVersion: version, items: [] })
    })

    it('refuses a route that its schema forbids', async () => {
      const { status, body } = await server.request(
        'POST',
        '/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes',
        {
          apiVersion: 'gateway.networking.k8s.io/v1',
          kind: 'HTTPRoute',
          metadata: { name: 'r' },
          spec: { rules: [{ matches: [{ path: { type: 'PathPrefix', value: 'no-slash' } }] }] },
        },
      )
      expect(status).toBe(422)
      expect(body.message).toContain("must be an absolute path and start with '/'")
    })
  },
)
