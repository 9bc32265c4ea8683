/** A real Envoy with the filter, configured from manifests by `sluice filter-config`. */
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { filterConfig } from '../../src/tools/cli/filter-config/filter-config.ts'
import { freePorts } from './free-port.ts'
import { partPath } from './parts.ts'
import { type Program, startProgram } from './program.ts'
import { eventually } from './wait-for.ts'

const module = join(import.meta.dirname, '../../dist/sluice-filter.wasm')

export interface EnvoyOptions {
  /** Kubernetes manifests, as objects. */
  readonly manifests: readonly object[]
  /** Port of the upstream on the loopback interface. */
  readonly upstream: number
  /** Number of workers. */
  readonly concurrency?: number
  /** Sends headers on before bodies are judged, as Istio does. */
  readonly passesHeaders?: boolean
}

export interface Envoy {
  readonly base: string
  /** Replaces the manifests, and waits until Envoy uses them. */
  reconfigure(manifests: readonly object[]): Promise<void>
  /** Values of counters by name. */
  counters(): Promise<Readonly<Record<string, number>>>
  /** Resident memory of Envoy in bytes, with that of the filter; Linux only. */
  residentBytes(): number
  /** The last lines of the log; the access log has one line for each request. */
  lastLines(count?: number): string
  close(): Promise<void>
}

const typed = (type: string, fields: object) => ({
  '@type': `type.googleapis.com/envoy.extensions.${type}`,
  ...fields,
})

const address = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } })

interface WasmFilter {
  typed_config: {
    config: {
      allow_on_headers_stop_iteration: boolean
      configuration: { value: string }
    }
  }
}

/** The HTTP filter for manifests. @throws Error if a protection would be lost */
export async function envoyFilterFor(
  folder: string,
  manifests: readonly object[],
): Promise<WasmFilter> {
  const file = join(folder, 'manifests.json')
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }))
  const lines: string[] = []
  const options = { file: [file], output: 'envoy', module } as const
  const answer = await filterConfig(options, (line) => lines.push(line))
  if (answer.exitCode !== 0) throw new Error(lines.join('\n'))
  return parse(answer.text().join('\n')) as WasmFilter
}

/** Without `holdHeaders`, the filter must not ask Envoy to stop at headers. */
function passHeaders(filter: WasmFilter): WasmFilter {
  const { config } = filter.typed_config
  const { holdHeaders: _held, ...rest } = JSON.parse(config.configuration.value)
  config.configuration.value = JSON.stringify(rest)
  config.allow_on_headers_stop_iteration = false
  return filter
}

/** Envoy must be able to hold a message that the filter has judged. */
const bufferLimit = 32 << 20

const accessLog =
  'status=%RESPONSE_CODE% details=%RESPONSE_CODE_DETAILS% model=%FILTER_STATE(wasm.sluice.model:PLAIN)% input=%FILTER_STATE(wasm.sluice.input_tokens:PLAIN)% output=%FILTER_STATE(wasm.sluice.output_tokens:PLAIN)% guard=%FILTER_STATE(wasm.sluice.guard:PLAIN)%\n'

function listener(port: number, filters: readonly object[], version: number): object {
  const route = { match: { prefix: '/' }, route: { cluster: 'upstream', timeout: '60s' } }
  const hosts = [{ name: 'all', domains: ['*'], routes: [route] }]
  const manager = typed('filters.network.http_connection_manager.v3.HttpConnectionManager', {
    stat_prefix: `v${version}`,
    route_config: { virtual_hosts: hosts },
    access_log: [
      {
        name: 'access',
        typed_config: typed('access_loggers.stream.v3.StdoutAccessLog', {
          log_format: { text_format_source: { inline_string: accessLog } },
        }),
      },
    ],
    http_filters: [
      ...filters,
      { name: 'router', typed_config: typed('filters.http.router.v3.Router', {}) },
    ],
  })
  return {
    '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
    name: 'http',
    address: address(port),
    per_connection_buffer_limit_bytes: bufferLimit,
    filter_chains: [{ filters: [{ name: 'manager', typed_config: manager }] }],
  }
}

function bootstrap(folder: string, admin: number, upstream: number): object {
  const endpoint = { endpoint: { address: address(upstream) } }
  return {
    node: { id: 'test', cluster: 'test' },
    admin: { address: address(admin) },
    dynamic_resources: {
      lds_config: { path_config_source: { path: join(folder, 'listeners.json') } },
    },
    static_resources: {
      clusters: [
        {
          name: 'upstream',
          type: 'STATIC',
          connect_timeout: '5s',
          per_connection_buffer_limit_bytes: bufferLimit,
          load_assignment: {
            cluster_name: 'upstream',
            endpoints: [{ lb_endpoints: [endpoint] }],
          },
        },
      ],
    },
  }
}

export interface EnvoyFiles {
  readonly http: number
  readonly admin: number
  readonly upstream: number
  readonly filters: readonly object[]
}

/** Writes the configuration of an Envoy with these HTTP filters; the path of the bootstrap. */
export function writeEnvoyFiles(folder: string, files: EnvoyFiles, version = 1): string {
  const resources = [listener(files.http, files.filters, version)]
  const listeners = join(folder, 'listeners.json')
  writeFileSync(`${listeners}.new`, JSON.stringify({ version_info: `${version}`, resources }))
  // Envoy reads the file when another one is moved there.
  renameSync(`${listeners}.new`, listeners)
  const path = join(folder, 'envoy.json')
  writeFileSync(path, JSON.stringify(bootstrap(folder, files.admin, files.upstream)))
  return path
}

/** Of the process that was started with this configuration. */
function residentBytesOf(config: string): number {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const arguments_ = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      if (!arguments_[0]?.endsWith('/envoy') || !arguments_.includes(config)) continue
      const [, kilobytes] =
        /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
      return Number(kilobytes) * 1024
    } catch {
      // The process has ended meanwhile.
    }
  }
  throw new Error(`no Envoy runs with ${config}`)
}

export async function startEnvoy(options: EnvoyOptions): Promise<Envoy> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-envoy-'))
  const { http, admin } = await freePorts('http', 'admin')
  const log = join(folder, 'log')
  const config = join(folder, 'envoy.json')
  let version = 0
  const configure = async (manifests: readonly object[]) => {
    const made = await envoyFilterFor(folder, manifests)
    const filter = options.passesHeaders === true ? passHeaders(made) : made
    const { upstream } = options
    writeEnvoyFiles(folder, { http, admin, upstream, filters: [filter] }, ++version)
  }
  await configure(options.manifests)
  const program: Program = startProgram(
    join(partPath('envoy'), 'envoy'),
    [
      ['-c', config],
      ['--concurrency', `${options.concurrency ?? 1}`],
      ['--use-dynamic-base-id', '--log-level', 'warning'],
    ].flat(),
    log,
  )
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${admin}${path}`)).text()
  /** Waits until all workers accept connections with the last configuration. */
  const settled = () =>
    eventually(async () => {
      if (program.hasExited()) throw new Error(program.lastLines())
      const stats = await ask('/stats?filter=listener_manager')
      const isUsed =
        stats.includes(`lds.version_text: "${version}"`) &&
        stats.includes(`listener_in_place_updated: ${version - 1}\n`) &&
        stats.includes('total_listeners_warming: 0\n')
      if (!isUsed) throw new Error(stats)
    })
  await settled()
  return {
    base: `http://127.0.0.1:${http}`,
    async reconfigure(manifests) {
      await configure(manifests)
      await settled()
    },
    async counters() {
      const lines = (await ask('/stats?filter=sluice')).trim().split('\n')
      const entries = lines.map((line) => line.replace('wasmcustom.', '').split(': '))
      return Object.fromEntries(entries.map(([name, value]) => [name, Number(value)]))
    },
    residentBytes: () => residentBytesOf(config),
    lastLines: (count) => program.lastLines(count),
    async close() {
      await program.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
