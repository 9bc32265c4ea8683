/** The manifests of a soak: each set of policies in front of each upstream, models, tools and files. */
import {
  configMap,
  gateway,
  hostOf,
  httpRoute,
  type Manifest,
  manifest,
  mcpBackend,
  policy,
  routeByHost,
  routeByPath,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { forbiddenField } from '../support/tagged-upstream.ts'
import { routes as formats, reachedBackend } from '../support/vendors/fleet.ts'
import type { Servers } from './servers.ts'

const expression = (name: string, value: string) => ({ name, value })

/** Policies by name. */
const policies: Readonly<Record<string, object>> = {
  nothing: {},
  extproc: { extProc: { backendRef: toBackend('processor') } },
  extauth: {
    extAuth: { backendRef: toBackend('auth'), http: { allowedRequestHeaders: [forbiddenField] } },
  },
  extauthgrpc: { extAuth: { backendRef: toBackend('auth-grpc'), grpc: {} } },
  authorized: {
    authorization: {
      action: 'Deny',
      policy: { matchExpressions: [`request.headers["${forbiddenField}"] == "yes"`] },
    },
  },
  transformed: {
    transformation: {
      response: { set: [expression('x-set', 'request.headers["x-tag"]')] },
      request: { set: [expression('x-copy', 'request.headers["x-tag"]')] },
    },
  },
  everything: {
    extProc: { backendRef: toBackend('processor') },
    extAuth: { backendRef: toBackend('auth-grpc'), grpc: {} },
    rateLimit: { local: [{ requests: 1_000_000, unit: 'Seconds' }] },
    transformation: { response: { set: [expression('x-set', 'response.headers["x-tag"]')] } },
    timeouts: { request: '25s' },
  },
}

export const policyNames = Object.keys(policies)
/** Policies that refuse requests with the forbidden field. */
export const refusingNames = ['extproc', 'extauth', 'extauthgrpc', 'authorized', 'everything']
/** Policies in front of connections that change their protocol. */
export const upgradableNames = ['nothing', 'extauth', 'authorized']

/** Ways to the tagged upstream: directly with each version of HTTP, also over TLS, or through a real server. */
export const waysOf = ({ upstreams }: Pick<Servers, 'upstreams'>): string[] => [
  'http1',
  'http2',
  'tls1',
  'tls2',
  ...upstreams.keys(),
]

const emails = { regex: { builtins: ['Email'] } }
const guards = { promptGuard: { request: [emails], response: [emails] } }

/** Base paths of models; the text of those that begin with `masked` is masked. */
export const models = {
  completions: ['plain', 'masked', 'over'],
  messages: ['messages', 'masked-messages'],
} as const

function modelObjects({ ports }: Servers): readonly Manifest[] {
  const at = (port: number) => ({ host: '127.0.0.1', port })
  const a = { provider: { vendorA: {}, ...at(ports.a) } }
  const c = { provider: { vendorC: {}, ...at(ports.c) } }
  const guarded = { ai: { routes: formats, ...guards } }
  const over = {
    groups: [
      [{ name: 'flaky', vendorA: {}, ...at(ports.flaky) }],
      [{ name: 'c', vendorC: {}, ...at(ports.c) }],
    ].map((providers) => ({ providers })),
  }
  return [
    ...reachedBackend('plain', a),
    ...reachedBackend('masked', a, guarded),
    ...reachedBackend('over', over),
    ...reachedBackend('messages', c),
    ...reachedBackend('masked-messages', c, guarded),
  ]
}

function toolObjects({ tools }: Servers): readonly Manifest[] {
  const targets = tools.map((port, at) => ({
    name: `t${at}`,
    static: { host: '127.0.0.1', port },
  }))
  return [
    mcpBackend('tools', targets.slice(0, 1)),
    routeByPath('tools'),
    mcpBackend('joined', targets),
    routeByPath('joined'),
  ]
}

/** All objects but those that change while the soak runs. */
export function manifests(servers: Servers): string {
  const { gateway: port, secureGateway, tagged, secure, ports, upstreams } = servers
  const log = { add: [{ name: 'tag', expression: 'request.headers["x-tag"]' }] }
  const version = (name: string) => ({ http: { version: name } })
  return manifest(
    gateway(port, {
      listeners: [
        { name: 'http', port, protocol: 'HTTP' },
        {
          ...{ name: 'https', port: secureGateway, protocol: 'HTTPS' },
          tls: { certificateRefs: [{ name: 'certificate' }] },
        },
      ],
    }),
    tlsSecret('certificate', servers.certificate),
    configMap('authority', { 'ca.crt': servers.authority }),
    policy('log', 'Gateway/edge', { frontend: { accessLog: { attributes: log } } }),
    staticBackend('http1', tagged.port, version('HTTP1')),
    staticBackend('http2', tagged.port, version('HTTP2')),
    ...(['HTTP1', 'HTTP2'] as const).map((name, at) =>
      staticBackend(`tls${at + 1}`, secure.port, {
        ...version(name),
        tls: { sni: 'tagged.test', caCertificateRefs: [{ name: 'authority' }] },
      }),
    ),
    ...[...upstreams].map(([name, at]) =>
      staticBackend(name, at, version(name === 'envoy' ? 'HTTP2' : 'HTTP1')),
    ),
    staticBackend('auth', ports.auth),
    staticBackend('auth-grpc', ports.authGrpc),
    staticBackend('processor', ports.processor),
    ...Object.entries(policies).flatMap(([name, traffic]) =>
      waysOf(servers).flatMap((way) => [
        routeByHost(`${name}-${way}`, toBackend(way)),
        ...(Object.keys(traffic).length === 0
          ? []
          : [policy(`${name}-${way}`, `HTTPRoute/${name}-${way}`, { traffic })]),
      ]),
    ),
    routeByHost('limited', toBackend('http1')),
    policy('limited', 'HTTPRoute/limited', {
      traffic: { rateLimit: { local: [{ requests: limitedRequests, unit: 'Seconds' }] } },
    }),
    ...(upstreams.has('nginx') ? [routeByHost('files', toBackend('nginx'))] : []),
    ...modelObjects(servers),
    ...toolObjects(servers),
  )
}

/** How many requests a second the route `limited` admits, in all workers together. */
export const limitedRequests = 10

export const changingHost = hostOf('changing')

/** What changes: a route whose responses carry the revision, and some routes that come and go. */
export function changing(revision: number): string {
  const header = { name: 'x-revision', value: `${revision}` }
  const others = Array.from({ length: revision % 7 }, (_, at) =>
    routeByHost(`other-${at}`, toBackend('http1')),
  )
  return manifest(
    httpRoute('changing', {
      hostnames: [changingHost],
      rules: [
        {
          filters: [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [header] } }],
          backendRefs: [toBackend('http1')],
        },
      ],
    }),
    ...others,
  )
}
