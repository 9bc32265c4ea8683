/** The official suite for MCP servers has the same results for the gateway as for its server. */
import { expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, toBackend } from '../support/manifests.ts'
import { startConformanceServer } from '../support/mcp-conformance-server.ts'
import { judgeServer } from '../support/mcp-conformance-suite.ts'
import { describeWithParts } from '../support/parts.ts'

/** Scenarios that differ, and why. */
const exceptions: Readonly<Record<string, string>> = {}

const judge = (port: number) => judgeServer('mcp-conformance', port, ['--suite', 'active'])

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
