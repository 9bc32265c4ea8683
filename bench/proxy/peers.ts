/**
 * What we are measured against, each configured to do the same: route by host, path prefix and a
 * header (others are 404), set one response header, write an access log, keep connections alive.
 */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Certificate } from '../../test/support/certificates.ts'
import { freePort } from '../../test/support/gateway.ts'
import type { Bound, Row } from '../harness.ts'
import { envoy } from './envoy-peer.ts'
import { routing } from './load.ts'
import { type MeasuredProxy, type Peer, startProxyProcess } from './process.ts'

/** Pinned, so that figures of two days can be compared. */
const packages = { 'http-proxy': '1.18.1', '@fastify/http-proxy': '11.6.3', fastify: '5.12.8' }

const versionIn = (text: string): string => /\d+\.\d+(\.\d+)?/.exec(text)?.[0] ?? 'unknown'

/** `protocol`: the protocol of clients; a certificate means HTTP/1.1 over TLS. */
export async function nginx(
  folder: string,
  upstream: number,
  protocol: 'http1' | 'http2' | Certificate = 'http1',
): Promise<Peer> {
  const name = 'nginx'
  const suffix = protocol === 'http2' ? ' http2' : typeof protocol === 'object' ? ' ssl' : ''
  const tls = typeof protocol === 'object' ? nginxTls(folder, protocol) : ''
  const found = spawnSync('nginx', ['-v'], { encoding: 'utf8' })
  if (found.error !== undefined)
    return { name, absent: 'not on PATH (apt-get install nginx-light)' }
  const port = await freePort()
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; worker_processes 1;
pid ${join(folder, 'nginx.pid')};
error_log stderr error;
events { worker_connections 16384; }
http {
  access_log /dev/null combined buffer=16k flush=1s;
  client_body_temp_path ${join(folder, 'body')}; proxy_temp_path ${join(folder, 'proxy')};
  fastcgi_temp_path ${join(folder, 'f')}; uwsgi_temp_path ${join(folder, 'u')}; scgi_temp_path ${join(folder, 's')};
  client_body_buffer_size 64k; proxy_buffers 16 16k; tcp_nodelay on;
  keepalive_requests 1000000000; keepalive_timeout 300s;
  map $http_${routing.header.replace('-', '_')} $is_routed { default 0; ${routing.value} 1; }
  upstream shop { server 127.0.0.1:${upstream}; keepalive 256; keepalive_requests 1000000000; }
  ${tls}
  server { listen 127.0.0.1:${port}${suffix} default_server; return 404; }
  server {
    listen 127.0.0.1:${port}${suffix}; server_name ${routing.host};
    location / { return 404; }
    location ${routing.path} {
      if ($is_routed = 0) { return 404; }
      add_header x-served-by nginx;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_pass http://shop;
    }
    location ${routing.path}sse {
      if ($is_routed = 0) { return 404; }
      add_header x-served-by nginx;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_buffering off; proxy_pass http://shop;
    }
  }
}
`,
  )
  const command = ['nginx', '-p', folder, '-e', 'stderr', '-c', config]
  return { name, command: { name, version: versionIn(found.stderr), port, command } }
}

/** The same versions as ours, and sessions by tickets as we have them; all else is nginx's default. */
function nginxTls(folder: string, { certificate, key }: Certificate): string {
  writeFileSync(join(folder, 'nginx.crt'), certificate)
  writeFileSync(join(folder, 'nginx.key'), key)
  return `ssl_certificate ${join(folder, 'nginx.crt')}; ssl_certificate_key ${join(folder, 'nginx.key')};
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_tickets on;`
}

export async function haproxy(
  folder: string,
  upstream: number,
  protocol: 'http1' | 'http2' | Certificate = 'http1',
): Promise<Peer> {
  const name = 'haproxy'
  const found = spawnSync('haproxy', ['-v'], { encoding: 'utf8' })
  if (found.error !== undefined) return { name, absent: 'not on PATH (apt-get install haproxy)' }
  const port = await freePort()
  const config = join(folder, 'haproxy.cfg')
  writeFileSync(
    config,
    `global
  nbthread 1
  maxconn 4096
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  option http-keep-alive
  http-reuse always
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend http
  bind 127.0.0.1:${port}${haproxyProtocol(folder, protocol)}
  acl host hdr(host) -i ${routing.host}
  acl path path_beg ${routing.path}
  acl team hdr(${routing.header}) ${routing.value}
  http-response set-header x-served-by haproxy
  http-request return status 404 unless host path team
  use_backend shop if host path team
backend shop
  server shop 127.0.0.1:${upstream} pool-max-conn 256
`,
  )
  const command = ['haproxy', '-db', '-f', config]
  return { name, command: { name, version: versionIn(found.stdout), port, command } }
}

/** What follows the address that haproxy binds. */
function haproxyProtocol(folder: string, protocol: 'http1' | 'http2' | Certificate): string {
  if (typeof protocol === 'string') return protocol === 'http2' ? ' proto h2' : ''
  const pem = join(folder, 'haproxy.pem')
  writeFileSync(pem, `${protocol.certificate}\n${protocol.key}`)
  return ` ssl crt ${pem}`
}

/** Installs npm peers once, into the user's cache. Rejects if the registry cannot be reached. */
export async function installPackages(packages: Readonly<Record<string, string>>): Promise<string> {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
  const folder = join(cache, 'sluice-bench', wanted.join('_').replaceAll('/', '+'))
  if (existsSync(folder)) return folder
  const fresh = `${folder}.${process.pid}`
  mkdirSync(fresh, { recursive: true })
  writeFileSync(join(fresh, 'package.json'), '{"private":true}')
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  try {
    await promisify(execFile)('npm', ['install', ...quiet, ...wanted], { cwd: fresh })
    renameSync(fresh, folder)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    throw error
  }
  return folder
}

async function nodePeers(upstream: number): Promise<Peer[]> {
  const names = ['http-proxy', '@fastify/http-proxy'] as const
  try {
    const folder = await installPackages(packages)
    const script = join(import.meta.dirname, 'node-peers.mjs')
    const peers = names.map(async (name): Promise<Peer> => {
      const port = await freePort()
      const command = [process.execPath, script, name, folder, `${port}`, `${upstream}`]
      return { name, command: { name, version: packages[name], port, command } }
    })
    return await Promise.all(peers)
  } catch (error) {
    const absent = `npm could not install it: ${(error as Error).message.split('\n')[0]}`
    return names.map((name) => ({ name, absent }))
  }
}

export async function findPeers(folder: string, upstream: number): Promise<Peer[]> {
  return [
    await nginx(folder, upstream),
    await haproxy(folder, upstream),
    await envoy(folder, upstream),
    ...(await nodePeers(upstream)),
  ]
}

export interface StartedPeers {
  readonly running: readonly MeasuredProxy[]
  /** Why each of the others does not run, by name. */
  readonly absent: ReadonlyMap<string, string>
}

export async function startPeers(peers: readonly Peer[]): Promise<StartedPeers> {
  const running: MeasuredProxy[] = []
  const absent = new Map<string, string>()
  for (const peer of peers) {
    if ('absent' in peer) absent.set(peer.name, peer.absent)
    else {
      try {
        running.push(await startProxyProcess(peer.command))
      } catch (error) {
        absent.set(peer.name, (error as Error).message)
      }
    }
  }
  return { running, absent }
}

/** Samples in the order of the proxies, by their names. */
export const byName = (
  proxies: readonly MeasuredProxy[],
  samples: readonly (readonly number[])[],
): Record<string, readonly number[]> =>
  Object.fromEntries(proxies.map(({ name }, index) => [name, samples[index] ?? []]))

/** A row for each peer, with what Sluice took once a round. An absent peer has a row that says why. */
export function rowsAgainst(
  { running, absent }: StartedPeers,
  id: string,
  samples: Readonly<Record<string, readonly number[]>>,
  boundOf: (peer: string) => Bound | undefined,
): Row[] {
  const names = [...running.map(({ name }) => name), ...absent.keys()]
  return names.map((name): Row => {
    const bound = boundOf(name)
    const reason = absent.get(name)
    return {
      id: `${id}.${name}`,
      unit: 'µs',
      own: samples.sluice ?? [],
      peer: { name, samples: samples[name] ?? [] },
      ...(bound && { bound }),
      ...(reason && { note: `${name} is absent: ${reason}` }),
    }
  })
}
