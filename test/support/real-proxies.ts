/** nginx, haproxy and Envoy as processes, for tests that need servers and proxies that are not ours. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPart } from './parts.ts'
import { type Program, startProgram } from './program.ts'
import { waitFor } from './wait-for.ts'

export const proxyNames = ['nginx', 'haproxy', 'envoy'] as const
export type ProxyName = (typeof proxyNames)[number]

/** How to install each; Envoy comes with the other parts. */
const hints: Readonly<Record<ProxyName, string>> = {
  nginx: 'apt-get install nginx-light',
  haproxy: 'apt-get install haproxy',
  envoy: 'eval "$(test/assets/setup)"',
}

/** Why the program cannot be started, with the command that installs it; undefined if it is there. */
export function absenceOf(name: ProxyName): string | undefined {
  const part = findPart(name)
  return part.found ? undefined : `${name} is missing (${part.reason}). Install it: ${hints[name]}`
}

function pathOf(name: ProxyName): string {
  const part = findPart(name)
  if (!part.found) throw new Error(absenceOf(name))
  return name === 'envoy' ? join(part.path, 'envoy') : part.path
}

const versionArguments = { nginx: '-v', haproxy: '-v', envoy: '--version' } as const

/** Such as `1.22.1`. */
export function versionOf(name: ProxyName): string {
  // nginx writes its version to standard error.
  const text = execFileSync('sh', ['-c', '"$0" "$1" 2>&1', pathOf(name), versionArguments[name]])
  return /\d+\.\d+\.\d+/.exec(text.toString())?.[0] ?? 'unknown'
}

export interface RealProxy {
  readonly name: ProxyName
  /** Sends a signal to the process. */
  signal(name: 'STOP' | 'CONT'): void
  /** Kills the process and starts another one on the same ports. */
  restart(): Promise<void>
  lastLines(): string
  close(): Promise<void>
}

/**
 * Starts a program with a configuration that may depend on a folder of its own, and waits until it
 * accepts connections on the port.
 */
export async function startRealProxy(
  name: ProxyName,
  port: number,
  configure: (folder: string) => string,
): Promise<RealProxy> {
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  const file = join(folder, name === 'envoy' ? 'envoy.json' : `${name}.conf`)
  writeFileSync(file, configure(folder))
  const log = join(folder, 'log')
  const launch = async (): Promise<Program> => {
    const program = startProgram(pathOf(name), argumentsOf(name, folder, file), log)
    await waitFor(`${name} on port ${port}`, async () => {
      if (program.hasExited()) throw new Error(`${name} has ended:\n${program.lastLines()}`)
      return accepts(port)
    })
    return program
  }
  let program = await launch().catch((error: unknown) => {
    rmSync(folder, { recursive: true, force: true })
    throw error
  })
  return {
    name,
    signal: (signal) => program.signal(signal),
    async restart() {
      await program.stop()
      program = await launch()
    },
    lastLines: () => program.lastLines(),
    async close() {
      await program.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function argumentsOf(name: ProxyName, folder: string, file: string): readonly string[] {
  if (name === 'nginx') return ['-p', folder, '-e', 'stderr', '-c', file]
  if (name === 'haproxy') return ['-db', '-f', file]
  return ['-c', file, '--concurrency', '1', '--use-dynamic-base-id', '--log-level', 'error']
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

/** A configuration of nginx with one process, whose files are in the folder. */
export function nginxConfig(folder: string, http: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => {
    mkdirSync(join(folder, what), { recursive: true })
    return `${what}_temp_path ${join(folder, what)};`
  })
  return `daemon off; master_process off; worker_processes 1; pid ${join(folder, 'nginx.pid')};
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; server_tokens off; tcp_nodelay on;
  ${temporary.join(' ')}
  ${http}
}
`
}

/** A typed value of Envoy's configuration. */
export const envoyType = (type: string, fields: object = {}) => ({
  '@type': `type.googleapis.com/envoy.${type}`,
  ...fields,
})

const envoyAddress = (port: number) => ({
  socket_address: { address: '127.0.0.1', port_value: port },
})

/** A listener of Envoy that accepts HTTP/1.1 and HTTP/2 by prior knowledge, with a router. */
export function envoyListener(port: number, routes: object, more: object = {}): object {
  const manager = envoyType(
    'extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    {
      stat_prefix: 'test',
      codec_type: 'AUTO',
      generate_request_id: false,
      server_header_transformation: 'PASS_THROUGH',
      route_config: routes,
      http_filters: [
        {
          name: 'router',
          typed_config: envoyType('extensions.filters.http.router.v3.Router', {
            suppress_envoy_headers: true,
          }),
        },
      ],
      ...more,
    },
  )
  const filters = [{ name: 'http', typed_config: manager }]
  return { name: `http-${port}`, address: envoyAddress(port), filter_chains: [{ filters }] }
}

/** A cluster of Envoy with one endpoint. */
export function envoyCluster(name: string, port: number, options: object): object {
  const endpoint = { endpoint: { address: envoyAddress(port) } }
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] },
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': envoyType(
        'extensions.upstreams.http.v3.HttpProtocolOptions',
        { explicit_http_config: options },
      ),
    },
  }
}
