/** Checks the configuration of the admission webhook, which fails open without a message. */
import { X509Certificate } from 'node:crypto'
import {
  collectionPath,
  type KubeClient,
  type KubeList,
  type KubeObject,
} from '../../../control/kube/index.ts'
import { type Check, errorAbout, type Finding, warningAbout } from './finding.ts'

interface Webhook {
  readonly name: string
  readonly failurePolicy?: string
  readonly clientConfig: {
    readonly caBundle?: string
    readonly service?: { readonly namespace: string; readonly name: string }
  }
}

const configurations = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'validatingwebhookconfigurations',
}

export async function checkWebhook(client: KubeClient): Promise<Omit<Check, 'name'>> {
  const { items } = await client.get<KubeList>(collectionPath(configurations))
  const findings: Finding[] = []
  let isInstalled = false
  for (const { metadata, webhooks } of (items ?? []) as (KubeObject & { webhooks?: Webhook[] })[]) {
    const webhook = webhooks?.find(({ name }) => name === 'validate.sluice.dev')
    if (webhook === undefined) continue
    isInstalled = true
    const subject = `ValidatingWebhookConfiguration ${metadata.name}`
    findings.push(...(await webhookFindings(client, subject, webhook)))
  }
  if (isInstalled) return { findings }
  return { findings, notChecked: 'the webhook is not installed (controller.admission.enabled)' }
}

async function webhookFindings(
  client: KubeClient,
  subject: string,
  { failurePolicy, clientConfig: { caBundle = '', service } }: Webhook,
): Promise<Finding[]> {
  const findings: Finding[] = []
  const problem = bundleProblem(caBundle)
  if (problem !== undefined) {
    const advice = 'upgrade the chart, or set controller.admission.caBundle'
    findings.push(errorAbout(subject, problem, advice))
  }
  if (service !== undefined && !(await hasEndpoint(client, service))) {
    const text = `its Service ${service.namespace}/${service.name} has no ready endpoint: objects are not judged when they are applied`
    findings.push(errorAbout(subject, text, 'look at the pods of the controller'))
  }
  if (failurePolicy === 'Fail') {
    const text = 'it fails closed: if the controller is down, no gateway object can be changed'
    findings.push(warningAbout(subject, text, 'set failurePolicy: Ignore, as the chart does'))
  }
  return findings
}

function bundleProblem(caBundle: string): string | undefined {
  if (caBundle === '') return 'it has no caBundle, so the API server does not trust the webhook'
  try {
    const { validTo } = new X509Certificate(Buffer.from(caBundle, 'base64'))
    return Date.parse(validTo) < Date.now() ? `its authority expired at ${validTo}` : undefined
  } catch {
    return 'its caBundle is not a certificate'
  }
}

async function hasEndpoint(
  client: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<boolean> {
  const slices = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' }
  const query = { labelSelector: `kubernetes.io/service-name=${name}` }
  const { items } = await client.get<KubeList>(collectionPath(slices, namespace), { query })
  return ((items ?? []) as (KubeObject & { endpoints?: readonly Endpoint[] })[]).some(
    ({ endpoints = [] }) => endpoints.some(({ conditions }) => conditions?.ready !== false),
  )
}

interface Endpoint {
  readonly conditions?: { readonly ready?: boolean }
}
