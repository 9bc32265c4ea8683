/** `sluice doctor` against a real API server and a real NATS server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { Authority } from '../support/certificates.ts'
import { gateway, route, service, TestCluster } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { sluice } from '../support/gateway.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

interface Answer {
  readonly checks: readonly { name: string; findings: number; notChecked?: string }[]
  readonly findings: readonly {
    check: string
    severity: string
    subject: string
    message: string
  }[]
}

describeWithParts(
  [...apiServerParts, 'gateway-api-crds', 'nats-server'],
  'sluice doctor in a cluster',
  () => {
    let nats: NatsServer
    let cluster: TestCluster
    let controller: ControllerProcess

    const doctor = async (...args: string[]) => {
      const where = ['--kubeconfig', cluster.server.kubeconfig, '--namespace', 'default']
      const { code, stdout, stderr } = await sluice('doctor', ...where, ...args, '-o', 'json')
      expect(stderr).toBe('')
      return { code, ...(JSON.parse(stdout) as Answer) }
    }
    const found = ({ findings }: Answer, check: string) =>
      findings.flatMap((one) =>
        one.check === check ? [`${one.severity}: ${one.subject}: ${one.message}`] : [],
      )

    beforeAll(async () => {
      nats = await startNatsServer()
      cluster = await new TestCluster(await startApiServer()).install()
      controller = await new ControllerProcess({
        kubeconfig: cluster.server.kubeconfig,
        nats: nats.url,
      }).start()
      await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True')
    }, 300_000)
    afterAll(async () => {
      await controller?.dispose()
      await cluster?.server.stop()
      await nats?.remove()
    })

    it('finds nothing in a cluster as installed, and says what it did not check', async () => {
      const answer = await doctor('--nats', nats.url)
      expect(answer).toMatchObject({ code: 0, findings: [] })
      expect(answer.checks.map(({ name, notChecked = '' }) => `${name}: ${notChecked}`)).toEqual([
        'api-server: ',
        'definitions: ',
        'controller: ',
        'access: the leader is not a pod, so its service account is unknown',
        'conditions: ',
        'certificates: ',
        'webhook: the webhook is not installed (controller.admission.enabled)',
        'nats: ',
        'proxies: no proxy is in the log',
      ])
    })

    it('names every fault of a cluster, what it is about and what to do', async () => {
      const ended = new Authority().issue(['edge.example.com'], 'ec', {
        notAfter: new Date(Date.now() - 86_400_000),
      })
      const data = {
        'tls.crt': Buffer.from(ended.certificate).toString('base64'),
        'tls.key': Buffer.from(ended.key).toString('base64'),
      }
      const { request } = cluster.server
      const secret = { metadata: { name: 'edge' }, type: 'kubernetes.io/tls', data }
      await request('POST', '/api/v1/namespaces/default/secrets', secret)
      const tls = { certificateRefs: [{ name: 'edge' }] }
      const listeners = [{ name: 'https', port: 443, protocol: 'HTTPS', tls }]
      await cluster.applyAll([gateway('edge', 'default', { listeners }), service('shop')])
      await cluster.apply(route('shop', 'edge', 'missing'))
      await cluster.condition('HTTPRoute', 'shop', 'ResolvedRefs=False')
      // The pod that leads, with an account without rights.
      await request('POST', '/api/v1/namespaces/default/serviceaccounts', {
        metadata: { name: 'weak' },
      })
      const containers = [{ name: 'controller', image: 'sluice' }]
      const pod = {
        metadata: { name: 'replica' },
        spec: { serviceAccountName: 'weak', containers },
      }
      expect((await request('POST', '/api/v1/namespaces/default/pods', pod)).status).toBe(201)
      await request(
        'DELETE',
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gatewaybudgets.sluice.dev',
      )
      const path =
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gatewaypolicies.sluice.dev'
      const { body: definition } = await request('GET', path)
      definition.spec.versions[0].schema.openAPIV3Schema.description = 'older'
      await request('PUT', path, definition)
      const webhook = {
        name: 'validate.sluice.dev',
        failurePolicy: 'Ignore',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        clientConfig: { service: { namespace: 'default', name: 'gone' } },
      }
      const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
      await request('POST', configurations, { metadata: { name: 'sluice' }, webhooks: [webhook] })

      const answer = await doctor()
      expect(answer.code).toBe(1)
      expect(found(answer, 'definitions')).toEqual([
        'warning: CustomResourceDefinition gatewaypolicies.sluice.dev: its schema is that of another version: fields may be refused, or dropped without notice',
        'error: CustomResourceDefinition gatewaybudgets.sluice.dev: it is not installed',
      ])
      expect(found(answer, 'conditions').join('\n')).toMatch(
        /error: HTTPRoute default\/shop, parent .*: ResolvedRefs is False \(BackendNotFound\)/,
      )
      expect(found(answer, 'conditions').join('\n')).toMatch(
        /Gateway default\/edge: Programmed is False/,
      )
      expect(found(answer, 'certificates')).toEqual([
        expect.stringMatching(/^error: Secret default\/edge: tls.crt expired at /),
      ])
      const uid = (await cluster.get('Secret', 'edge')).metadata.uid
      const [event] = await waitFor('the Kubernetes Event', async () => {
        const events = await cluster.events(uid)
        return events.length > 0 && events
      })
      expect(event).toMatchObject({ type: 'Warning', reason: 'CertificateInvalid' })
      const metrics = (await controller.get('metrics', '/metrics')).text
      expect(metrics).toContain('certificate_problems{state="invalid"} 1')
      expect(found(answer, 'access')).toContain(
        'error: ServiceAccount default/weak: it may not list httproutes of gateway.networking.k8s.io',
      )
      expect(found(answer, 'webhook')).toEqual([
        'error: ValidatingWebhookConfiguration sluice: it has no caBundle, so the API server does not trust the webhook',
        expect.stringContaining('its Service default/gone has no ready endpoint'),
      ])
      expect(answer.checks.find(({ name }) => name === 'nats')?.notChecked).toContain('--nats')
    })

    it('reports a controller that is gone, and a NATS server that does not answer', async () => {
      await controller.stop()
      const lease = '/apis/coordination.k8s.io/v1/namespaces/default/leases/sluice-controller'
      const merge = {
        spec: { holderIdentity: 'replica', renewTime: '2020-01-01T00:00:00.000000Z' },
      }
      await cluster.server.request('PATCH', lease, merge)
      const answer = await doctor('--nats', 'nats://127.0.0.1:1')
      expect(found(answer, 'controller')).toEqual([
        expect.stringMatching(/^error: Lease default\/sluice-controller: no replica leads/),
      ])
      expect(found(answer, 'nats')).toEqual([
        expect.stringContaining('cannot connect to nats://127.0.0.1:1'),
      ])
    })

    it('checks manifests and event logs without a cluster', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sluice-doctor-'))
      const file = join(folder, 'gateway.json')
      const list = {
        apiVersion: 'v1',
        kind: 'List',
        items: [gateway('edge'), route('a', 'edge', 'gone')],
      }
      writeFileSync(file, JSON.stringify(list))
      const { code, stdout } = await sluice('doctor', '-f', file)
      expect(code).toBe(1)
      expect(stdout).toContain('Service default/gone')
      expect(stdout).toMatch(/conditions: error: HTTPRoute default\/a.*ResolvedRefs is False/)
      expect(stdout).toMatch(/^ {2}→ sluice explain HTTPRoute default\/a -f /m)
      const log = await sluice('doctor', '--log-file', controller.logFile)
      expect(log.code).toBe(2)
      rmSync(folder, { recursive: true, force: true })
    })
  },
)
