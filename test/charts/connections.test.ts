/** Values of the chart `sluice` that restrict who may connect: the webhook and the network policies. */
import { X509Certificate } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { only, type Rendered, template } from '../support/helm.ts'
import { describeWithParts } from '../support/parts.ts'

const podOf = (objects: readonly Rendered[]) => only(objects, 'Deployment').spec.template
const textOf = (objects: readonly Rendered[], name: string): string | undefined =>
  podOf(objects).spec.containers[0].env.find((one: { name: string }) => one.name === name)?.value
const render = (values: object = {}) => template('sluice', values)

describeWithParts(['helm'], 'the webhook and the network policies of the chart', () => {
  let plain: readonly Rendered[]
  beforeAll(async () => {
    plain = await render()
  })

  it('[values.controller.admission.enabled] [values.controller.admission.mode] [values.controller.admission.timeoutSeconds] [values.controller.admission.existingSecret] [values.controller.admission.caBundle] [values.controller.admission.clientCaBundle] [values.controller.admission.annotations] [values.controller.service.ports.admission] installs a webhook that fails open, with a certificate for its Service', async () => {
    expect(plain.some(({ kind }) => kind === 'ValidatingWebhookConfiguration')).toBe(false)
    const service = { ports: { admission: 9500 } }
    const objects = await render({ controller: { service, admission: { enabled: true } } })
    const [webhook] = only(objects, 'ValidatingWebhookConfiguration').webhooks
    expect(webhook).toMatchObject({ failurePolicy: 'Ignore', timeoutSeconds: 5 })
    expect(webhook.clientConfig.service).toMatchObject({ port: 9500 })
    const { data } = only(objects, 'Secret')
    const token = Buffer.from(data.token, 'base64').toString()
    expect(token).toHaveLength(40)
    expect(webhook.clientConfig.service.path).toBe(`/validate/${token}`)
    expect(webhook.clientConfig.caBundle).toBe(data['ca.crt'])
    const pem = Buffer.from(data['tls.crt'], 'base64').toString()
    const { name, namespace } = webhook.clientConfig.service
    expect(new X509Certificate(pem).checkHost(`${name}.${namespace}.svc`)).toBeDefined()
    expect(textOf(objects, 'SLUICE_ADMISSION_ADDRESS')).toBe(':9500')
    expect(textOf(objects, 'SLUICE_ADMISSION_MODE')).toBe('deny')
    const annotations = { 'cert-manager.io/inject-ca-from': 'ns/cert' }
    const given = {
      existingSecret: 'mine',
      caBundle: 'CA',
      clientCaBundle: 'PEM',
      mode: 'warn',
      timeoutSeconds: 3,
    }
    const admission = { enabled: true, annotations, ...given }
    const own = await render({ controller: { admission } })
    const configuration = only(own, 'ValidatingWebhookConfiguration')
    expect(configuration.metadata.annotations).toEqual(annotations)
    expect(configuration.webhooks[0]).toMatchObject({
      timeoutSeconds: 3,
      clientConfig: {
        caBundle: Buffer.from('CA').toString('base64'),
        service: { path: '/validate' },
      },
    })
    expect(only(own, 'ConfigMap').data).toEqual({ 'ca.crt': 'PEM' })
    expect(textOf(own, 'SLUICE_ADMISSION_CLIENT_CA')).toBe('/etc/admission-clients/ca.crt')
    expect(JSON.stringify(podOf(own).spec.volumes)).toContain('admission-clients')
    expect(own.some(({ kind }) => kind === 'Secret')).toBe(false)
    expect(JSON.stringify(podOf(own).spec.volumes)).toContain('{"secretName":"mine"}')
    expect(textOf(own, 'SLUICE_ADMISSION_MODE')).toBe('warn')
  })

  it('[values.networkPolicy.enabled] [values.networkPolicy.apiServerCidrs] lets only the controller connect to NATS, and only the API server to the webhook', async () => {
    expect(plain.some(({ kind }) => kind === 'NetworkPolicy')).toBe(false)
    const networkPolicy = { enabled: true, apiServerCidrs: ['10.0.0.1/32'] }
    const controller = { admission: { enabled: true } }
    const objects = await render({ networkPolicy, nats: { enabled: true }, controller })
    const { spec } = only(objects, 'NetworkPolicy', 'sluice')
    expect(spec.podSelector.matchLabels).toEqual(
      only(objects, 'Deployment').spec.selector.matchLabels,
    )
    expect(spec.ingress).toEqual([
      { ports: [{ port: 9978 }, { port: 9093 }, { port: 9092 }] },
      { ports: [{ port: 9444 }], from: [{ ipBlock: { cidr: '10.0.0.1/32' } }] },
    ])
    const nats = only(objects, 'NetworkPolicy', 'sluice-nats')
    expect(nats.spec.podSelector.matchLabels).toEqual(
      only(objects, 'StatefulSet').spec.selector.matchLabels,
    )
    const [{ from }] = nats.spec.ingress
    expect(from).toEqual([{ podSelector: spec.podSelector }])
    const grants = { ...controller, grantStore: 'nats://grants:4222' }
    const shared = await render({ networkPolicy, nats: { enabled: true }, controller: grants })
    expect(only(shared, 'NetworkPolicy', 'sluice-nats').spec.ingress[0].from).toHaveLength(2)
  })
})
