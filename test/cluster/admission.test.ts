/** The admission webhook behind a real API server, which presents a client certificate and knows the path. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { Authority } from '../support/certificates.ts'
import {
  gateway,
  gatewayCrds,
  route,
  service,
  TestCluster,
  type TestObject,
} from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import type { Crd } from '../support/crds.ts'
import { templateText } from '../support/helm.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const own = 'sluice.dev/v1alpha1'
const meta = (name: string, annotations = {}) => ({ name, namespace: 'default', annotations })

const parameters: TestObject = {
  apiVersion: own,
  kind: 'GatewayParameters',
  metadata: meta('safe'),
  spec: { changeProtection: { mode: 'Hold' } },
}
const parametersRef = { group: 'sluice.dev', kind: 'GatewayParameters', name: 'safe' }
const edge = (...ports: number[]) =>
  gateway('edge', 'default', {
    infrastructure: { parametersRef },
    listeners: ports.map((port) => ({ name: `http-${port}`, port, protocol: 'HTTP' })),
  })
const rules = (expression: string, annotations = {}): TestObject => ({
  apiVersion: own,
  kind: 'GatewayPolicy',
  metadata: meta('rules', annotations),
  spec: {
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'shop' }],
    traffic: { authorization: { policy: { matchExpressions: [expression] } } },
  },
})
const accessPolicy: TestObject = {
  apiVersion: 'agentic.networking.x-k8s.io/v1alpha1',
  kind: 'XAccessPolicy',
  metadata: meta('agents'),
  spec: {
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' }],
    action: 'Allow',
    rules: [{ name: 'r', source: { type: 'ServiceAccount', serviceAccount: { name: 'agent' } } }],
  },
}
/** A definition without a schema: the project that owns it releases none that could be installed here. */
const accessPolicyCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'xaccesspolicies.agentic.networking.x-k8s.io',
    annotations: { 'api-approved.kubernetes.io': 'unapproved, experimental-only' },
  },
  spec: {
    group: 'agentic.networking.x-k8s.io',
    scope: 'Namespaced',
    names: { kind: 'XAccessPolicy', plural: 'xaccesspolicies', singular: 'xaccesspolicy' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
}

describeWithParts(
  [...apiServerParts, 'gateway-api-crds', 'helm'],
  'the admission webhook of a controller',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-admission-'))
    const authority = new Authority()
    const clients = new Authority()
    const apiServer = clients.issue(['kube-apiserver'])
    let url = ''
    let cluster: TestCluster
    let controller: ControllerProcess

    /** Applies an object with `dryRun`, which asks webhooks, too. */
    const dryRun = async (object: TestObject) => {
      const { kind, metadata } = object
      const path = `${cluster.path(kind, metadata.name, metadata.namespace)}?fieldManager=test&force=true&dryRun=All`
      const type = 'application/apply-patch+yaml'
      const { status, body, warning } = await cluster.server.request('PATCH', path, object, type)
      return { status, message: `${body.message ?? ''}`, warning }
    }
    const dryDelete = async (kind: string, name: string) => {
      const path = `${cluster.path(kind, name)}?dryRun=All`
      const { status, body } = await cluster.server.request('DELETE', path)
      return { status, message: `${body.message ?? ''}` }
    }

    beforeAll(async () => {
      const { certificate, key } = authority.issue(['127.0.0.1'])
      writeFileSync(join(folder, 'tls.crt'), certificate)
      writeFileSync(join(folder, 'tls.key'), key)
      writeFileSync(join(folder, 'token'), 'only-the-api-server-knows')
      writeFileSync(join(folder, 'clients.crt'), clients.certificate)
      cluster = new TestCluster(await startApiServer({ webhookClient: apiServer }))
      await cluster.install([...gatewayCrds(), accessPolicyCrd as unknown as Crd])
      await cluster.server.request('POST', '/api/v1/namespaces', { metadata: { name: 'others' } })
      await cluster.applyAll([parameters, edge(80, 81), service('shop'), accessPolicy])
      await cluster.applyAll([route('shop', 'edge', 'shop'), rules('request.path != "/"')])
      const admission = ['--admission-address', '127.0.0.1:0', '--admission-tls-dir', folder]
      const selected = [{ matchLabels: { 'kubernetes.io/metadata.name': 'default' } }]
      controller = await new ControllerProcess({
        kubeconfig: cluster.server.kubeconfig,
        args: admission,
        env: {
          SLUICE_ADMISSION_CLIENT_CA: join(folder, 'clients.crt'),
          SLUICE_DISCOVERY_NAMESPACE_SELECTORS: JSON.stringify(selected),
        },
      }).start()
      await cluster.condition('GatewayPolicy', 'rules', 'Accepted=True/Valid')
      url = (await controller.said(/^admission webhook: (\S+)/m))[1] ?? ''
      await installWebhook(`${url}/only-the-api-server-knows`)
    }, 300_000)
    afterAll(async () => {
      await controller?.dispose()
      await cluster?.server.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    /** Installs the configuration of the chart, with the address of this process. */
    async function installWebhook(address: string): Promise<void> {
      const values = { controller: { admission: { enabled: true } } }
      const configuration = parseAllDocuments(await templateText('sluice', values))
        .map((document) => document.toJS())
        .find((object) => object?.kind === 'ValidatingWebhookConfiguration')
      const caBundle = Buffer.from(authority.certificate).toString('base64')
      const webhooks = configuration.webhooks.map((one: object) => ({
        ...one,
        clientConfig: { url: address, caBundle },
      }))
      const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
      const object = { ...configuration, webhooks }
      expect((await cluster.server.request('POST', path, object)).status).toBe(201)
      // The API server asks a new webhook only after a moment.
      await waitFor('the webhook', async () => (await dryRun(edge(80))).status === 403)
    }

    it('refuses what changeProtection would hold, and says how to apply it anyway', async () => {
      const { message } = await dryRun(edge(80))
      expect(message).toContain(
        'denied the request: lostListeners: listeners of Gateway default/edge are lost: http-81 (HTTP, port 81); to apply it anyway, set the annotation sluice.dev/admit: "true"',
      )
      expect(await dryDelete('GatewayPolicy', 'rules')).toEqual({
        status: 403,
        message: expect.stringContaining('traffic.authorization of HTTPRoute default/shop'),
      })
      expect(await dryDelete('XAccessPolicy', 'agents')).toMatchObject({ status: 403 })
    })

    it('admits changes that meet the conditions, and those that are marked with a warning', async () => {
      expect(await dryRun(edge(80, 81, 82))).toEqual({ status: 200, message: '', warning: '' })
      const marked = edge(80)
      const { metadata } = marked
      const admit = { 'sluice.dev/admit': 'true' }
      const admitted = await dryRun({ ...marked, metadata: { ...metadata, annotations: admit } })
      expect(admitted).toMatchObject({ status: 200, message: '' })
      expect(admitted.warning).toContain('lostListeners: listeners of Gateway default/edge')
    })

    it('does not judge namespaces that no selector matches', async () => {
      const foreign = route('late', 'edge', 'missing', 'late.example.com', 'others')
      expect(await dryRun(foreign)).toEqual({ status: 201, message: '', warning: '' })
    })

    it('answers only a client with a certificate that knows the path', async () => {
      const { certificate: cert, key } = apiServer
      const ask = (path: string, client: object) =>
        new Promise((resolve, reject) => {
          const options = { method: 'POST', ca: authority.certificate, ...client }
          const call = request(`${url}${path}`, options, (response) => {
            response.resume()
            resolve(response.statusCode)
          })
          call.on('error', reject)
          call.end('{}')
        })
      expect(await ask('', { cert, key })).toBe(404)
      expect(await ask('/only-the-api-server-knows', { cert, key })).toBe(400)
      await expect(ask('/only-the-api-server-knows', {})).rejects.toThrow()
      const stranger = new Authority().issue(['kube-apiserver'])
      const other = { cert: stranger.certificate, key: stranger.key }
      await expect(ask('/only-the-api-server-knows', other)).rejects.toThrow()
    })

    it('warns of references that lead nowhere', async () => {
      const { status, warning } = await dryRun(route('late', 'edge', 'missing'))
      expect(status).toBe(201)
      expect(warning).toContain('ResolvedRefs is False')
    })

    it('fails open if the controller is gone', async () => {
      await controller.stop()
      expect(await dryRun(edge(80))).toMatchObject({ status: 200, message: '' })
    })
  },
)
