// A gateway with a model, keys, MCP tools, policies and traffic, whose console the pictures of live views show.
import { hash } from 'node:crypto'
import { z } from 'zod'
import { served } from '../../test/run/a2a-rig.ts'
import { freePort, startGateway } from '../../test/support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  mcpBackend,
  policy,
  staticBackend,
  toBackend,
} from '../../test/support/manifests.ts'
import { connectClient } from '../../test/support/mcp-client.ts'
import { TestMcpServer } from '../../test/support/mcp-server.ts'
import { startUpstream } from '../../test/support/upstream.ts'
import { startVendorA } from '../../test/support/vendors/vendor-a.ts'
import { waitFor } from '../../test/support/wait-for.ts'

const route = (name, path) =>
  httpRoute(name, {
    rules: [
      { matches: [{ path: { type: 'PathPrefix', value: path } }], backendRefs: [toBackend(name)] },
    ],
  })

const deny = (...matchExpressions) => ({ action: 'Deny', policy: { matchExpressions } })

function offerTools(server) {
  const text = async () => ({ content: [{ type: 'text', text: 'done' }] })
  server.registerTool('search_orders', { inputSchema: { query: z.string() } }, text)
  server.registerTool('delete_order', { inputSchema: { id: z.string() } }, text)
}

const keyEntry = (key, members) =>
  JSON.stringify({ keyHash: `sha256:${hash('sha256', key)}`, ...members })

/** The key that the traffic uses. */
export const clientKey = 'key-of-checkout'

const keys = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'keys', labels: { 'api-keys': 'models' } },
  data: {
    checkout: keyEntry(clientKey, {
      metadata: { owner: 'Ines', team: 'shop' },
      allowedModels: ['gpt-4o*'],
      expiresAt: '2099-06-30T00:00:00Z',
    }),
    reports: keyEntry('key-of-reports', { metadata: { owner: 'Jo', team: 'finance' } }),
    intern: keyEntry('key-of-intern', { metadata: { team: 'shop' }, disabled: true }),
    pilot: keyEntry('key-of-pilot', {
      metadata: { owner: 'Kai', team: 'lab' },
      expiresAt: '2026-03-31T00:00:00Z',
    }),
  },
}

/** What is sent once: answers, refusals, and a prompt that a guard rejects. */
async function sendTraffic(running, port) {
  const chat = (model, content) =>
    running.send(port, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${clientKey}` },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
    })
  for (let n = 0; n < 12; n++) {
    await running.send(port, { path: `/shop/items/${n}` })
    await chat(n % 3 === 0 ? 'gpt-4o' : 'gpt-4o-mini', 'Which lamps are in stock?')
  }
  for (let n = 0; n < 4; n++) await running.send(port, { path: '/payments' })
  await running.send(port, { path: '/shop/admin/users' })
  await chat('gpt-4o-mini', 'My key is sk-live-0123456789')
  for (let n = 0; n < 3; n++) await chat('gpt-4o-mini', 'Write to ines@example.com, please.')
  const client = await connectClient(port, '/tools')
  const call = (name, args) => client.callTool({ name, arguments: args }).catch(() => undefined)
  await client.listTools()
  for (let n = 0; n < 3; n++) await call('search_orders', { query: 'lamp' })
  await call('delete_order', { id: '1' })
  await client.close()
}

/** The gateway with the URL of its console, after its first requests. */
export async function startLiveGateway() {
  const port = await freePort()
  const upstream = await startUpstream()
  const vendor = await startVendorA()
  const tools = await new TestMcpServer({ offer: offerTools }).start()
  const deadPort = await freePort()
  const guards = [
    { regex: { matches: ['sk-live-[0-9]+'], action: 'Reject' } },
    { regex: { builtins: ['Email', 'CreditCard'] } },
  ]
  const provider = { vendorA: {}, host: '127.0.0.1', port: vendor.port }
  const manifests = [
    gateway(port),
    staticBackend('shop', upstream.port),
    route('shop', '/shop'),
    staticBackend('payments', deadPort),
    route('payments', '/payments'),
    policy('no-admin', 'HTTPRoute/shop', {
      traffic: { authorization: deny('request.path.startsWith("/shop/admin")') },
    }),
    aiBackend('model', { provider }, { ai: { promptGuard: { request: guards } } }),
    route('model', '/v1'),
    keys,
    policy('keys', 'HTTPRoute/model', {
      traffic: {
        apiKeyAuthentication: { configMapSelector: { matchLabels: { 'api-keys': 'models' } } },
      },
    }),
    ...served('planner', { port: deadPort }),
    mcpBackend('tools', [{ name: 'orders', static: { host: '127.0.0.1', port: tools.port } }]),
    route('tools', '/tools'),
    policy('read-only', 'GatewayBackend/tools', {
      backend: { mcp: { authorization: deny('mcp.tool.name.startsWith("delete")') } },
    }),
  ]
  const consoleArgs = ['--console-address', '127.0.0.1:0', '--console-actions', 'true']
  const args = [...consoleArgs, '--record', 'all', '--change-protection', 'hold']
  const running = await startGateway({ manifests, args })
  await sendTraffic(running, port)
  const url = await waitFor('the URL', () => /^console: (http:\S+)$/m.exec(running.stderr)?.[1])
  const close = async () => {
    await running.dispose()
    await Promise.all([upstream.close(), vendor.close(), tools.kill()])
  }
  const send = (path) => running.send(port, { path })
  /** A change that would refuse what was recorded, so that the gateway holds it. */
  const holdChange = () =>
    running.write(
      'change.yaml',
      manifest(
        policy('closed', 'HTTPRoute/shop', {
          traffic: { authorization: deny('request.path.startsWith("/shop/items")') },
        }),
      ),
    )
  return { port, url, send, holdChange, close }
}
