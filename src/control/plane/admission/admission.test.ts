import { request } from 'node:https'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createEvent, relistFinished } from '../../../../events/index.ts'
import { Authority } from '../../../../test/support/certificates.ts'
import { FoldStory, type StoryObject } from '../../../../test/support/fold-story.ts'
import { shippedCatalog } from '../../../engines/messages/catalog/shipped.ts'
import { Judge } from '../../../past/what-if/judge.ts'
import { randomDigestKey } from '../../watch/digest-key.ts'
import { clusterDifferences } from '../../watch/kubernetes/differences.ts'
import { watchedKinds } from '../../watch/kubernetes/kinds.ts'
import { observeObject } from '../../watch/kubernetes/observe.ts'
import { ResourceIndex } from '../../watch/resource-index.ts'
import { apiBinding } from '../api-binding.ts'
import { AdmissionJudge } from './admission-judge.ts'
import { AdmissionServer } from './server.ts'

const group = 'gateway.networking.k8s.io'
const parametersRef = { group: 'sluice.dev', kind: 'GatewayParameters', name: 'safe' }
const edge = (annotations: Record<string, string>, ...ports: number[]): StoryObject => ({
  apiVersion: `${group}/v1`,
  kind: 'Gateway',
  metadata: { name: 'edge', namespace: 'default', annotations } as StoryObject['metadata'],
  spec: {
    gatewayClassName: 'agentgateway',
    infrastructure: { parametersRef },
    listeners: ports.map((port) => ({ name: `http-${port}`, port, protocol: 'HTTP' })),
  },
})
const route = (backend: string): StoryObject => ({
  apiVersion: `${group}/v1`,
  kind: 'HTTPRoute',
  metadata: { name: 'late', namespace: 'default' },
  spec: {
    parentRefs: [{ name: 'edge' }],
    rules: [{ backendRefs: [{ name: backend, port: 80 }] }],
  },
})
const rules = (expression: string): StoryObject => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayPolicy',
  metadata: { name: 'rules', namespace: 'default' },
  spec: {
    targetRefs: [{ group, kind: 'Gateway', name: 'edge' }],
    traffic: { authorization: { policy: { matchExpressions: [expression] } } },
  },
})

const authority = new Authority()
const certificate = authority.issue(['127.0.0.1'])
const story = new FoldStory()
const index = new ResourceIndex('kubernetes')
let server: AdmissionServer

const sourceOptions = {
  ...apiBinding,
  digestKey: randomDigestKey(),
  onChange: () => Promise.resolve(),
}
const open = (refuses: boolean) =>
  new AdmissionJudge({
    plane: { fold: story.fold, index, sourceOptions },
    source: { isRelevant: () => true },
    refuses,
    judge: () =>
      Promise.resolve(
        new Judge({
          derivation: { checkRegex: () => undefined },
          simulator: {},
          records: () => [],
          catalog: async () => shippedCatalog,
          pause: () => Promise.resolve(),
        }),
      ),
  })

beforeAll(async () => {
  story.apply(
    {
      apiVersion: `${group}/v1`,
      kind: 'GatewayClass',
      metadata: { name: 'agentgateway' },
      spec: { controllerName: 'sluice.dev/gateway-controller' },
    },
    {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayParameters',
      metadata: { name: 'safe' },
      spec: { changeProtection: { mode: 'Hold' } },
    },
    edge({}, 80, 81),
    rules('request.path != "/"'),
  )
  const data = { count: 1, digest: '00' } as never
  story.record((context) =>
    createEvent(relistFinished, context, { id: 'listed', subject: 'x', data }),
  )
  index.applyAll(story.events.map(({ event }) => event) as never)
  const pair = { certificate: certificate.certificate, privateKey: certificate.key }
  server = await new AdmissionServer({
    address: '127.0.0.1:0',
    tls: { current: () => pair, onChange: () => () => undefined },
    timeoutMs: 60_000,
    notify: (_, text) => expect(text).toContain('broken'),
  }).start()
})
afterAll(() => server.close())

/** Sends a body to the webhook over TLS. */
const post = (path: string, body: string) =>
  new Promise<{ status: number; text: string }>((resolve, reject) => {
    const url = `https://${server.address}${path}`
    const call = request(url, { method: 'POST', ca: authority.certificate }, (response) => {
      let text = ''
      response.on('data', (part) => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    call.on('error', reject)
    call.end(body)
  })

const inCluster = (object: StoryObject) => {
  const metadata = { generation: 2, uid: `${object.kind}/default/${object.metadata.name}` }
  return { ...object, metadata: { ...metadata, ...object.metadata } }
}

async function review(object: StoryObject, operation = 'UPDATE', username = 'ann') {
  const [name = '', version = ''] = object.apiVersion.split('/')
  const sent = inCluster(object)
  const content = operation === 'DELETE' ? { oldObject: sent } : { object: sent }
  const kind = { group: name, version, kind: object.kind }
  const asked = { uid: 'u1', operation, kind, userInfo: { username }, ...content }
  const { status, text } = await post(
    '/validate',
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: asked }),
  )
  expect(status).toBe(200)
  const { apiVersion, kind: answered, response } = JSON.parse(text)
  expect([apiVersion, answered, response.uid]).toEqual([
    'admission.k8s.io/v1',
    'AdmissionReview',
    'u1',
  ])
  const { allowed, status: refusal, warnings } = response
  return { allowed, message: refusal?.message, warnings }
}

const lost = 'lostListeners: listeners of Gateway default/edge are lost: http-81 (HTTP, port 81)'
const admitted = { allowed: true, message: undefined, warnings: undefined }

it('admits every object with a warning while no configuration is known', async () => {
  const { allowed, warnings } = await review(edge({}, 80))
  expect([allowed, warnings]).toEqual([
    true,
    [expect.stringContaining('no configuration is known')],
  ])
  expect((await post('/validate', '{"request":{}}')).status).toBe(400)
  expect((await post('/other', '')).status).toBe(404)
})

it('refuses what changeProtection would hold, unless it has the annotation or a controller changes it', async () => {
  server.judge = open(true)
  expect(await review(edge({}, 80))).toEqual({
    allowed: false,
    message: `${lost}; to apply it anyway, set the annotation sluice.dev/admit: "true"; the change is then held until it is approved`,
    warnings: undefined,
  })
  const deletion = await review(rules('request.path != "/"'), 'DELETE')
  expect(deletion).toMatchObject({
    allowed: false,
    message: expect.stringContaining('traffic.authorization of Gateway default/edge'),
  })
  const user = 'system:serviceaccount:kube-system:namespace-controller'
  expect(await review(rules('request.path != "/"'), 'DELETE', user)).toMatchObject({
    allowed: true,
    warnings: [expect.stringContaining('removedProtections')],
  })
  const marked = await review(edge({ 'sluice.dev/admit': 'true' }, 80))
  expect(marked).toEqual({ ...admitted, warnings: [lost] })
  expect(await review(edge({}, 80, 81, 82))).toEqual(admitted)
})

it('refuses an invalid object, and warns of parts that cannot be used and references that do not resolve', async () => {
  server.judge = open(true)
  const unknown = { ...rules('true'), spec: { targetRefs: [], nothing: true } }
  expect(await review(unknown)).toMatchObject({
    allowed: false,
    message: expect.stringContaining('spec.nothing: unknown field'),
  })
  const known = {
    ...edge({}, 80, 81),
    spec: { ...(edge({}, 80, 81).spec as object), nothing: true },
  }
  expect((await review(known)).allowed).toBe(false)
  const foreign = { ...route('any'), spec: { parentRefs: [{ name: 'of-another' }], nothing: true } }
  expect(await review(foreign, 'CREATE')).toMatchObject({
    allowed: true,
    warnings: [expect.stringContaining('spec.nothing: unknown field')],
  })
  const partial = await review(rules('request.path =='))
  expect([partial.allowed, partial.warnings[0]]).toEqual([
    true,
    expect.stringContaining('the expression ends too early'),
  ])
  const { allowed, warnings } = await review(route('missing'), 'CREATE')
  expect([allowed, warnings]).toEqual([true, [expect.stringContaining('ResolvedRefs is False (')]])
  expect(story.fold.graph.object('HTTPRoute/default/late')).toBeUndefined()
})

it('only warns in the mode warn', async () => {
  server.judge = open(false)
  expect(await review(edge({}, 80))).toEqual({ ...admitted, warnings: [lost] })
})

it('judges nothing that changes no spec, such as the approval of a change that is held', async () => {
  server.judge = open(true)
  const kind = watchedKinds.find((one) => one.kind === 'Gateway')
  if (kind === undefined) throw new Error('Gateways are not read')
  const claim = observeObject(kind, 'v1', inCluster(edge({}, 80)) as never, sourceOptions)
  const change = { claims: [claim], gone: [], cause: 'relist' } as const
  const context = { source: index.source, time: new Date().toISOString(), epoch: 0 }
  index.applyAll(clusterDifferences(index, change, context))
  expect(await review(edge({ 'sluice.dev/approve': '7' }, 80))).toEqual(admitted)
  expect((await review(edge({ 'sluice.dev/approve': '7' }, 82))).allowed).toBe(false)
})

it('admits an object with a warning if the judge fails, and asks another judge the next time', async () => {
  const failing = { judgeNext: () => Promise.reject(new Error('broken')) } as unknown as Judge
  let judges = 0
  let opened: Judge | undefined
  server.judge = new AdmissionJudge({
    plane: { fold: story.fold, index, sourceOptions },
    source: { isRelevant: () => true },
    refuses: true,
    judge: async () => {
      if (opened === undefined) judges++
      opened ??= failing
      return opened
    },
    forget: () => {
      opened = undefined
    },
  })
  for (const count of [1, 2]) {
    const { allowed, warnings } = await review(edge({}, 82))
    expect([allowed, warnings]).toEqual([true, [expect.stringContaining('an error occurred')]])
    expect(judges).toBe(count)
  }
})
