/** Our own gateway in front of MCP servers: `/mcp` knows what they speak, `/plain` does not. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  mcpBackend,
  staticBackend,
  toBackend,
} from '../../test/support/manifests.ts'
import { launcher } from '../harness.ts'
import { type MeasuredProxy, startProxyProcess } from '../proxy/process.ts'
export async function startMcpSluice(
  folder: string,
  upstreams: readonly number[],
  settings: Readonly<Record<string, unknown>> = {},
  program = launcher,
): Promise<MeasuredProxy> {
  const manifests = join(folder, 'manifests')
  mkdirSync(manifests)
  const port = await freePort()
  const targets = upstreams.map((upstream, n) => ({
    name: `server-${n}`,
    static: { host: '127.0.0.1', port: upstream },
  }))
  const route = (name: string) =>
    httpRoute(name, {
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
          backendRefs: [toBackend(name)],
        },
      ],
    })
  const objects = [
    gateway(port),
    mcpBackend('mcp', targets, settings),
    staticBackend('plain', upstreams[0] ?? 0),
    route('mcp'),
    route('plain'),
  ]
  writeFileSync(join(manifests, 'all.yaml'), manifest(...objects))
  const own = ['--admin-address', 'off', '--stats-address', '127.0.0.1:0']
  const more = ['--readiness-address', '127.0.0.1:0', '--bind-address', '127.0.0.1']
  const options = ['--ephemeral', '--workers', '1', ...own, ...more]
  const command = [program, 'run', '-f', manifests, ...options]
  return startProxyProcess({ name: 'sluice', version: '', port, command })
}
