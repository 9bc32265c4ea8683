/** FastMCP, on the official SDK for Python, as client and as server. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const folder = join(import.meta.dirname, '..', 'support')
const environment = () => ({ ...process.env, PYTHONPATH: partPath('python-mcp') })

async function startServer() {
  const child = spawn(partPath('python3'), [join(folder, 'mcp_python_server.py')], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { port: Number(line.toString()), close: () => child.kill('SIGKILL') }
}

/** What the client prints about a server. */
async function use(url: string): Promise<unknown> {
  const args = [join(folder, 'mcp_python_client.py'), url]
  const { stdout } = await promisify(execFile)(partPath('python3'), args, { env: environment() })
  return JSON.parse(stdout)
}

describeWithParts(['python3', 'python-mcp'], 'the SDK for Python', () => {
  const server = useFixture(startServer)
  const gateway = useFixture(async () => ({ port: await freePort() }))
  const running = useGateway(() => {
    const target = { name: 'py', static: { host: '127.0.0.1', port: server.port, path: '/mcp' } }
    return {
      manifests: { 'all.yaml': mcpManifests(gateway.port, { py: { targets: [target] } }) },
    }
  })

  it('gets the same through the gateway as from the server', async () => {
    const direct = await use(`http://127.0.0.1:${server.port}/mcp`)
    expect(await use(`http://127.0.0.1:${gateway.port}/py`)).toEqual(direct)
    expect(direct).toMatchObject({
      tools: ['add', 'fail', 'steps'],
      sum: 3,
      steps: 'done',
      failed: true,
      resource: 'content',
      prompt: 'Hello, Ada',
      progress: [0, 1, 2].map((step) => [step, 3]),
    })
    expect(running.stdout).toContain('gen_ai.tool.name=steps')
  })

  it('serves clients of both eras through the gateway', async () => {
    const add = { name: 'add', arguments: { a: 2, b: 3 } }
    const client = await connectClient(gateway.port, '/py')
    expect(await client.callTool(add)).toMatchObject({ structuredContent: { result: 5 } })
    await client.close()
    const url = `http://127.0.0.1:${gateway.port}/py`
    const { message } = await sendModern(url, modernRequest('tools/call', add))
    expect(message?.result).toMatchObject({ structuredContent: { result: 5 } })
  })
})
