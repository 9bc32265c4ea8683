/** Sluice, nginx and Envoy, configured alike: the routes of `cases/` in front of one server each. */
import { freePort, freePorts, startGateway } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  type Manifest,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import {
  envoyCluster,
  envoyListener,
  nginxConfig,
  type RealProxy,
  startRealProxy,
} from '../support/real-proxies.ts'
import { site } from './case.ts'
import { RecordingServer } from './recording-server.ts'

/** A proxy that answers on both ports, and the server behind it. */
export interface TestedProxy {
  readonly http1: number
  readonly http2: number
  readonly server: RecordingServer
  close(): Promise<void>
}

export const peers = ['nginx', 'envoy'] as const
export type Peer = (typeof peers)[number]

/** How long a response may take below `/slow`. */
const slowMs = 400

export async function startSluice(): Promise<TestedProxy> {
  const server = await RecordingServer.start()
  const [port, down] = [await freePort(), await freePort()]
  const running = await startGateway({
    manifests: [
      gateway(port),
      staticBackend('server', server.port, { http: { version: 'HTTP1' } }),
      staticBackend('down', down),
      ...sluiceRoutes(),
    ],
  })
  const close = async () => {
    await running.dispose()
    server.close()
  }
  return { http1: port, http2: port, server, close }
}

function sluiceRoutes(): readonly Manifest[] {
  const to = (name: string) => [toBackend(name)]
  const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } })
  const exact = (value: string) => ({ path: { type: 'Exact', value } })
  const rule = (match: object, more: object = {}) => ({
    matches: [match],
    backendRefs: to('server'),
    ...more,
  })
  const replacedBy = (replacePrefixMatch: string) => ({
    type: 'ReplacePrefixMatch',
    replacePrefixMatch,
  })
  const set = (name: string, value: string) => ({ set: [{ name, value }] })
  const redirect = {
    scheme: 'http',
    hostname: 'new.example.com',
    port: 80,
    path: replacedBy('/there'),
    statusCode: 302,
  }
  /** Shows at the server that a rule was chosen. */
  const matched = {
    filters: [
      {
        type: 'URLRewrite',
        urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath: '/matched' } },
      },
    ],
  }
  const changes = [
    {
      type: 'RequestHeaderModifier',
      requestHeaderModifier: { ...set('x-set', 'route'), remove: ['x-remove'] },
    },
    {
      type: 'ResponseHeaderModifier',
      responseHeaderModifier: { ...set('x-server-set', 'route'), remove: ['x-server-remove'] },
    },
  ]
  return [
    httpRoute('site', {
      hostnames: [site, '*.wild.example.com'],
      rules: [
        rule(exact('/exact')),
        rule(prefix('/api')),
        rule({ ...prefix('/by-header'), headers: [{ name: 'x-team', value: 'b' }] }, matched),
        rule({ ...prefix('/by-method'), method: 'POST' }, matched),
        {
          matches: [prefix('/moved')],
          filters: [{ type: 'RequestRedirect', requestRedirect: redirect }],
        },
        rule(prefix('/rewritten'), {
          filters: [{ type: 'URLRewrite', urlRewrite: { path: replacedBy('/inner') } }],
        }),
        rule(prefix('/changed'), { filters: changes }),
        rule(prefix('/slow'), { timeouts: { request: `${slowMs}ms` } }),
        { matches: [prefix('/down')], backendRefs: to('down') },
        rule(prefix('/')),
      ],
    }),
    httpRoute('only', { hostnames: ['only.example.com'], rules: [rule(exact('/only'))] }),
  ]
}

/** One process has a port for each version: nginx 1.22 serves only HTTP/2 on a port of HTTP/2. */
async function startNginx(): Promise<TestedProxy> {
  const server = await RecordingServer.start()
  const { http1, http2, down } = await freePorts('http1', 'http2', 'down')
  const to = 'proxy_pass http://server;'
  const listens = (option = '') =>
    `listen 127.0.0.1:${http1}${option}; listen 127.0.0.1:${http2} http2${option};`
  const below = (path: string, content: string) =>
    `location = ${path} { ${content} } location ${path}/ { ${content} }`
  const configure = (folder: string) =>
    nginxConfig(
      folder,
      `underscores_in_headers on; keepalive_timeout 60s; map $http_upgrade $on { default upgrade; '' ''; }
  upstream server { server 127.0.0.1:${server.port}; keepalive 8; }
  proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection "";
  proxy_buffering off; proxy_request_buffering off; proxy_pass_header Server; proxy_pass_header Date;
  proxy_redirect off; merge_slashes off;
  server { ${listens(' default_server')} return 404; }
  server {
    ${listens()} server_name ${site} ~^.+\\.wild\\.example\\.com$;
    location = /exact { ${to} }
    ${below('/api', to)}
    ${below('/by-header', `if ($http_x_team = b) { rewrite ^ /matched break; } ${to}`)}
    ${below('/by-method', `if ($request_method = POST) { rewrite ^ /matched break; } ${to}`)}
    location = /moved { return 302 http://new.example.com/there$is_args$args; }
    location /moved/ { rewrite ^/moved/(.*)$ http://new.example.com/there/$1 redirect; }
    location = /rewritten { proxy_pass http://server/inner; }
    location /rewritten/ { proxy_pass http://server/inner/; }
    ${below(
      '/changed',
      `proxy_set_header Host $http_host; proxy_set_header Connection ""; proxy_set_header X-Set route;
       proxy_set_header X-Remove ""; proxy_hide_header X-Server-Set; proxy_hide_header X-Server-Remove;
       add_header x-server-set route always; ${to}`,
    )}
    ${below('/slow', `proxy_read_timeout ${slowMs}ms; ${to}`)}
    ${below('/down', `proxy_pass http://127.0.0.1:${down};`)}
    location = /socket {
      proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $on; ${to}
    }
    location / { ${to} }
  }
  server { ${listens()} server_name only.example.com; location = /only { ${to} } location / { return 404; } }`,
    )
  const nginx = await startRealProxy('nginx', http1, configure)
  return { http1, http2, server, close: () => endBoth(nginx, server) }
}

async function endBoth(proxy: RealProxy, server: RecordingServer): Promise<void> {
  await proxy.close()
  server.close()
}

async function startEnvoy(): Promise<TestedProxy> {
  const server = await RecordingServer.start()
  const [port, down] = [await freePort(), await freePort()]
  const to = (cluster: string, more: object = {}) => ({
    route: { cluster, timeout: '0s', ...more },
  })
  const below = (path: string) => ({ path_separated_prefix: path })
  const exactHeader = (name: string, exact: string) => [{ name, string_match: { exact } }]
  const set = (key: string) => [
    { header: { key, value: 'route' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
  ]
  const matched = to('server', { prefix_rewrite: '/matched' })
  const routes = [
    { match: { path: '/exact' }, ...to('server') },
    { match: below('/api'), ...to('server') },
    { match: { ...below('/by-header'), headers: exactHeader('x-team', 'b') }, ...matched },
    { match: { ...below('/by-method'), headers: exactHeader(':method', 'POST') }, ...matched },
    {
      match: below('/moved'),
      redirect: {
        host_redirect: 'new.example.com',
        prefix_rewrite: '/there',
        response_code: 'FOUND',
      },
    },
    { match: below('/rewritten'), ...to('server', { prefix_rewrite: '/inner' }) },
    {
      match: below('/changed'),
      ...to('server'),
      request_headers_to_add: set('x-set'),
      request_headers_to_remove: ['x-remove'],
      response_headers_to_add: set('x-server-set'),
      response_headers_to_remove: ['x-server-remove'],
    },
    { match: below('/slow'), ...to('server', { timeout: `${slowMs / 1_000}s` }) },
    { match: below('/down'), ...to('down') },
    { match: { prefix: '/' }, ...to('server') },
  ]
  const hosts = [
    { name: 'site', domains: [site, '*.wild.example.com'], routes },
    {
      name: 'only',
      domains: ['only.example.com'],
      routes: [{ match: { path: '/only' }, ...to('server') }],
    },
  ]
  const listener = envoyListener(
    port,
    { virtual_hosts: hosts, ignore_port_in_host_matching: true },
    {
      http_protocol_options: { accept_http_10: true, enable_trailers: true },
      proxy_100_continue: true,
      upgrade_configs: [{ upgrade_type: 'websocket' }],
    },
  )
  const clusters = [
    envoyCluster('server', server.port, { http_protocol_options: { enable_trailers: true } }),
    envoyCluster('down', down, { http_protocol_options: {} }),
  ]
  const envoy = await startRealProxy('envoy', port, () =>
    JSON.stringify({ static_resources: { listeners: [listener], clusters } }),
  )
  return { http1: port, http2: port, server, close: () => endBoth(envoy, server) }
}

export const startPeer: Readonly<Record<Peer, () => Promise<TestedProxy>>> = {
  nginx: startNginx,
  envoy: startEnvoy,
}
