/** MCP sessions over proxies of controllers: any of them carries on what another one began. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { ClusterRig, stablePort } from '../support/cluster-rig.ts'
import { mcpManifests, rawSession } from '../support/mcp-client.ts'
import { TestMcpServer } from '../support/mcp-server.ts'

// Several processes start.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let rig: ClusterRig
let server: TestMcpServer

beforeAll(async () => {
  server = await new TestMcpServer({
    offer: (one) => {
      one.registerTool('who', {}, () => ({ content: [{ type: 'text', text: 'me' }] }))
    },
  }).start()
})

afterAll(async () => {
  await rig?.dispose()
  await server?.kill()
})

it('[SessionRouting=Stateful] continues sessions at proxies of other replicas, and after a restart', async () => {
  const port = await stablePort()
  const targets = [{ name: 'only', static: { host: '127.0.0.1', port: server.port } }]
  rig = new ClusterRig({ 'all.yaml': mcpManifests(port, { mcp: { targets } }) })
  const planes = [await rig.controlPlane(), await rig.controlPlane()]
  const hosts = ['127.0.0.1', '127.0.0.2']
  const proxies = hosts.map((host, at) =>
    rig.proxy({
      name: `edge-${at}`,
      addresses: [planes[at]?.address ?? ''],
      args: ['--bind-address', host],
    }),
  )
  await Promise.all(proxies.map((proxy) => proxy.start()))
  const session = await rawSession(`${hosts[0]}:${port}`, '/mcp')
  const ask = (host: string | undefined) => {
    const params = { name: 'who', arguments: {} }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    return session.send(`${host}:${port}`, message)
  }
  for (const host of [...hosts, ...hosts]) {
    expect((await ask(host)).message).toMatchObject({ result: { content: [{ text: 'me' }] } })
  }
  const [first] = proxies
  await first?.saved()
  await first?.kill()
  for (const plane of planes) await plane.kill()
  // It starts from its stored configuration, without a controller.
  await first?.start()
  expect((await ask(hosts[0])).status).toBe(200)
  expect(server.sessionIds).toHaveLength(1)
  expect(await session.end(`${hosts[1]}:${port}`)).toBe(200)
  expect(server.sessionIds).toHaveLength(0)
  expect((await ask(hosts[0])).status).toBe(404)
})
