/** Configurations for tests of judgements of changes. */
import { createEvent, relistFinished } from '../../events/index.ts'
import { shippedCatalog } from '../../src/engines/messages/catalog/shipped.ts'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { Judge, type Judgement } from '../../src/past/what-if/judge.ts'
import { FoldStory, type StoryObject } from './fold-story.ts'

export const group = 'gateway.networking.k8s.io'

const gatewayClass: StoryObject = {
  apiVersion: `${group}/v1`,
  kind: 'GatewayClass',
  metadata: { name: 'agentgateway' },
  spec: { controllerName: 'sluice.dev/gateway-controller' },
}

export const gateway = (...ports: number[]): StoryObject => ({
  apiVersion: `${group}/v1`,
  kind: 'Gateway',
  metadata: { name: 'edge' },
  spec: {
    gatewayClassName: 'agentgateway',
    infrastructure: {
      parametersRef: { group: 'sluice.dev', kind: 'GatewayParameters', name: 'safe' },
    },
    listeners: ports.map((port) => ({ name: `http-${port}`, port, protocol: 'HTTP' })),
  },
})

export const parameters = (changeProtection: object, rollout?: object): StoryObject => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayParameters',
  metadata: { name: 'safe' },
  spec: { changeProtection, ...(rollout && { rollout }) },
})

export const route = (name: string, hostname: string): StoryObject => ({
  apiVersion: `${group}/v1`,
  kind: 'HTTPRoute',
  metadata: { name },
  spec: { parentRefs: [{ name: 'edge' }], hostnames: [hostname], rules: [{}] },
})

export const pathRoute = (
  name: string,
  hostname: string | undefined,
  path: string,
): StoryObject => ({
  ...route(name, ''),
  spec: {
    parentRefs: [{ name: 'edge' }],
    ...(hostname !== undefined && { hostnames: [hostname] }),
    rules: [{ matches: [{ path: { type: 'PathPrefix', value: path } }] }],
  },
})

export const redirecting = (name: string, hostname: string): StoryObject => ({
  ...route(name, hostname),
  spec: {
    parentRefs: [{ name: 'edge' }],
    hostnames: [hostname],
    rules: [{ filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https' } }] }],
  },
})

export const protecting = (name: string) => ({
  targetRefs: [{ group, kind: 'HTTPRoute', name }],
  traffic: { csrf: {} },
})

export const answering = (name: string): StoryObject => ({
  ...csrf('answer', {}),
  spec: {
    targetRefs: [{ group, kind: 'HTTPRoute', name }],
    traffic: { directResponse: { status: 200 } },
  },
})

export const csrf = (name: string, traffic: object): StoryObject => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayPolicy',
  metadata: { name },
  spec: { targetRefs: [{ group, kind: 'HTTPRoute', name: 'shop' }], traffic },
})

/** A configuration in force to which the judged changes apply. */
export function protectedStory(changeProtection: object, ...more: StoryObject[]): FoldStory {
  const story = new FoldStory().apply(gatewayClass, parameters(changeProtection), gateway(80, 81))
  story.apply(route('shop', 'shop.example'), csrf('guard', { csrf: {} }), ...more)
  return story.record((context) =>
    createEvent(relistFinished, context, {
      id: 'listed',
      subject: 'x',
      data: { count: 1, digest: '00' } as never,
    }),
  )
}

export const judge = (
  { fold }: FoldStory,
  records: readonly RecordedDecision[] = [],
): Promise<Judgement> =>
  new Judge({
    derivation: { checkRegex: () => undefined },
    simulator: {},
    records: () => records,
    catalog: async () => shippedCatalog,
    pause: () => Promise.resolve(),
  }).judge(fold)

/** A request that a proxy of the Gateway has forwarded. */
export const recordOf = (gateway: string, host = 'any.example'): RecordedDecision => ({
  id: gateway,
  time: '2026-01-31T12:00:00.000Z',
  proxy: 'p',
  worker: 0,
  setting: 'all',
  position: 1,
  request: {
    method: 'GET',
    host,
    path: '/',
    protocol: 'HTTP/1.1',
    scheme: 'http',
    port: 80,
    source: '192.0.2.1:1234',
    headers: [],
    digestKey: '',
  },
  route: { gateway, listener: 'http-80' },
  steps: [],
  attempts: [],
  response: {
    status: 200,
    reason: 'Upstream',
    ending: 'complete',
    requestBytes: 0,
    responseBytes: 0,
    durationMs: 1,
  },
  details: {},
})

const names = (objects: readonly { kind: string; name: string }[]) =>
  objects.map(({ kind, name }) => `${kind} ${name}`)

export const told = ({ passed, held, verdict }: Judgement) => ({
  passed: passed.map(names),
  held: held.map(({ objects }) => names(objects)),
  unmet: [...held.flatMap((one) => one.verdict.unmet), ...verdict.unmet].map(
    ({ condition, message }) => `${condition}: ${message}`,
  ),
})
