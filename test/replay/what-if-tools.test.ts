/** `sluice what-if` and `sluice decisions` for recorded calls of tools. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFolder, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway, manifest, mcpBackend, policy, routeByPath } from '../support/manifests.ts'
import { connectClient } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

const server = useMcpServer({
  offer(mcp) {
    for (const name of ['read', 'delete', 'secret']) {
      mcp.registerTool(name, {}, () => ({ content: [{ type: 'text', text: name }] }))
    }
  },
})
const modern = useModernServer()
const folder = useFolder('sluice-what-if-tools-')
const records = join(folder, 'records')
const port = await freePort()
const rules = (action: string, ...matchExpressions: string[]) =>
  policy('rules', 'GatewayBackend/tools', {
    backend: { mcp: { authorization: { action, policy: { matchExpressions } } } },
  })
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    mcpBackend('tools', [
      { name: 'a', static: { host: '127.0.0.1', port: server.port } },
      { name: 'b', static: { host: '127.0.0.1', port: modern.port } },
    ]),
    routeByPath('tools'),
    rules('Deny', 'mcp.tool.name == "secret"'),
  ],
  args: ['--record', 'errors', '--record-dir', records],
}))

const decisions = async (...options: string[]) => {
  const { stdout } = await sluice('decisions', '--record-dir', records, ...options, '-o', 'json')
  return stdout.split('\n').filter((line) => line !== '')
}

/** What happens to the records with these rules instead. */
async function whatIf(...expressions: Parameters<typeof rules>) {
  const change = join(folder, 'change.yaml')
  writeFileSync(change, manifest(rules(...expressions)))
  const where = ['--log-file', running.logFile, '--record-dir', records]
  const { stdout } = await sluice('what-if', ...where, '-f', change, '--overlay', '-o', 'json')
  const { requests } = JSON.parse(stdout) as {
    requests: {
      total: number
      groups: { kinds: string[]; cause: string; from: string; to: string; count: number }[]
      undecidedGroups: { reason: string; count: number }[]
    }
  }
  return requests
}

describe('recorded calls of tools', () => {
  it('can be selected by tool, target, and what has refused them', async () => {
    const client = await connectClient(port, '/tools')
    await client.callTool({ name: 'a_read' })
    await client.callTool({ name: 'a_delete' })
    await client.callTool({ name: 'a_delete' })
    await expect(client.callTool({ name: 'a_secret' })).rejects.toThrow('Unknown tool')
    await client.close()
    const message = modernRequest('tools/call', { name: 'b_echo', arguments: { id: 7 } })
    await sendModern(`http://127.0.0.1:${port}/tools`, message)
    await running.stop()
    await waitFor('all records', async () => (await decisions()).length >= 5 || undefined)
    expect(await decisions('--tool', 'delete')).toHaveLength(2)
    expect(await decisions('--target', 'b')).toHaveLength(1)
    const [refused = '{}', ...more] = await decisions('--refused-by', 'rules')
    expect(JSON.parse(refused)).toMatchObject({ details: { 'gen_ai.tool.name': 'secret' } })
    expect([more.length, (await decisions('--refused-by')).length]).toEqual([0, 1])
    expect(await decisions('--principal', 'ada')).toEqual([])
    const { stdout } = await sluice('decisions', '--record-dir', records, '--refused-by')
    expect(stdout).toContain('tool secret of a, refused by rules')
  })

  it('would be refused or allowed by changed rules', async () => {
    const { groups, undecidedGroups } = await whatIf('Deny', 'mcp.tool.name == "delete"')
    // What is not a call, such as a GET, depends on what is not recorded.
    expect(undecidedGroups.map(({ reason }) => reason)).toEqual([
      'backend: GatewayBackend default/tools changes, and bodies are not recorded',
    ])
    expect(groups.map(({ from, to, count }) => [from, to, count])).toEqual([
      ['deny 200', 'allow', 1],
      ['allow', 'deny 200', 2],
    ])
    expect(groups[1]?.cause).toContain('GatewayPolicy default/rules changed')
    const modernOnly = await whatIf('Allow', 'mcp.target == "b"')
    expect(modernOnly.groups).toMatchObject([{ kinds: ['allow-to-deny', 'verdict'], count: 3 }])
  })

  it('are undecided if a rule reads their arguments, which are not recorded', async () => {
    const { undecidedGroups } = await whatIf(
      'Deny',
      'mcp.target == "b" && mcp.tool.arguments.id == 7',
    )
    expect(undecidedGroups).toContainEqual(
      expect.objectContaining({
        count: 1,
        reason: 'backend.mcp: the arguments of the call are not recorded',
      }),
    )
  })
})
