/** The official suite for MCP servers has the same results for the gateway as for its server. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, toBackend } from '../support/manifests.ts'
import { startConformanceServer } from '../support/mcp-conformance-server.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

/** Scenarios that differ, and why. */
const exceptions: Readonly<Record<string, string>> = {}

const run = promisify(execFile)

/** The line of the summary for each scenario. */
async function judge(port: number): Promise<Record<string, string>> {
  const suite = join(
    partPath('mcp-conformance'),
    'node_modules/@modelcontextprotocol/conformance/dist/index.js',
  )
  const url = `http://127.0.0.1:${port}/mcp`
  const options = [suite, 'server', '--url', url, '--suite', 'active']
  const { stdout } = await run(process.execPath, options, { maxBuffer: 1 << 26 }).catch(
    (failed: { stdout: string }) => failed,
  )
  const lines = [...stdout.matchAll(/^[✓✗] ([\w-]+): (\d+ passed, \d+ failed)/gm)]
  return Object.fromEntries(lines.map(([, name, verdict]) => [name, verdict]))
}

const port = await freePort()

describeWithParts(['mcp-conformance'], 'the conformance suite for MCP servers', () => {
  const server = useFixture(startConformanceServer)
  useGateway(() => {
    const mcp = {
      targets: [{ name: 'only', static: { host: '127.0.0.1', port: server.port } }],
    }
    return {
      manifests: [
        gateway(port),
        httpRoute('mcp', { rules: [{ backendRefs: [toBackend('mcp')] }] }),
        {
          apiVersion: 'sluice.dev/v1alpha1',
          kind: 'GatewayBackend',
          metadata: { name: 'mcp' },
          spec: { mcp },
        },
      ],
    }
  })

  it('has the same results through the gateway as without it, except for the listed scenarios', async () => {
    const direct = await judge(server.port)
    expect(Object.keys(direct).length).toBeGreaterThan(25)
    for (const verdict of Object.values(direct)) expect(verdict).toMatch(/ 0 failed$/)
    const through = await judge(port)
    for (const name of Object.keys(exceptions)) expect(through[name]).not.toBe(direct[name])
    const differing = Object.keys(direct).filter((name) => through[name] !== direct[name])
    expect(differing.sort()).toEqual(Object.keys(exceptions).sort())
  }, 60_000)
})
