/** The console of a running gateway with traffic. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectClient } from '../support/mcp-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } })

describeWithParts(['chromium'], 'the console of a running gateway', async () => {
  const port = await freePort()
  const upstream = useUpstream()
  const vendor = useFixture(startVendorA)
  const tools = useMcpServer({
    offer: (server) => {
      server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({
        content: [{ type: 'text', text }],
      }))
      server.registerTool('delete', {}, () => ({ content: [] }))
    },
  })
  const denied = policy('closed', 'HTTPRoute/admin', {
    traffic: {
      authorization: { action: 'Deny', policy: { matchExpressions: ['request.method == "GET"'] } },
    },
  })
  const objects = () => [
    gateway(port),
    staticBackend('main', upstream.port),
    httpRoute('shop', { rules: [{ backendRefs: [toBackend('main')] }] }),
    httpRoute('admin', {
      rules: [{ matches: [prefix('/admin')], backendRefs: [toBackend('main')] }],
    }),
    denied,
    aiBackend(
      'chat',
      { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
      { ai: { promptGuard: { request: [{ regex: { matches: ['secret'], action: 'Reject' } }] } } },
    ),
    httpRoute('chat', {
      rules: [{ matches: [prefix('/v1')], backendRefs: [toBackend('chat')] }],
    }),
    mcpBackend('tools', [{ name: 'items', static: { host: '127.0.0.1', port: tools.port } }]),
    routeByPath('tools'),
    policy('tools', 'GatewayBackend/tools', {
      backend: {
        mcp: {
          authorization: {
            action: 'Deny',
            policy: { matchExpressions: ['mcp.tool.name == "delete"'] },
          },
        },
      },
    }),
  ]
  const catalog = join(useFolder('sluice-prices-'), 'catalog.json')
  const prices = { rates: { input: '1000000', output: '0' } }
  writeFileSync(catalog, JSON.stringify({ providers: { openai: { models: { 'm-1': prices } } } }))
  const gw = useGateway(() => ({
    manifests: { 'all.yaml': manifest(...objects()) },
    args: ['--console-address', '127.0.0.1:0', '--record', 'all', '--model-catalog', catalog],
  }))
  let console: ConsolePage
  beforeAll(async () => {
    const url = await waitFor('the URL', () => /^console: (http:\S+)$/m.exec(gw.stderr)?.[1])
    console = await startConsole(url)
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
  })
  afterAll(() => console?.close())
  const main = () => console.page.locator('main')

  it('lists requests as they end, and shows the way of one with what decided', async () => {
    await console.show('#/requests')
    await gw.send(port, { path: '/admin/users' })
    const row = console.page.locator('.row', { hasText: '/admin/users' })
    await row.getByRole('link').click()
    await eventually(() => main().textContent()).toContain('For another outcome')
    const step = console.page.locator('tr', { hasText: 'traffic.authorization' })
    expect(await step.textContent()).toContain('GatewayPolicy default/closed')
    expect(await step.textContent()).toContain('answer')
    expect(await seriousFaults(console)).toEqual([])
    await console.show('#/requests?status=403')
    await eventually(() => console.page.locator('.row').count()).toBe(1)
  })

  it('shows the traffic of the running gateway on the overview', async () => {
    await gw.send(port, { path: '/shop' })
    await console.show('#/')
    const traffic = console.page.getByRole('region', { name: 'Traffic', exact: true })
    await eventually(() => traffic.textContent()).toMatch(/requests\/s\d.*p99\d/)
    await eventually(() => traffic.locator('figure canvas').count()).toBeGreaterThan(2)
    expect(await seriousFaults(console)).toEqual([])
  })

  it('tries a request now and with edited manifests, side by side', async () => {
    const { page } = console
    await console.show('#/try')
    await page.getByLabel('Request, as a curl command').fill(`curl http://127.0.0.1:${port}/admin`)
    const editor = page.locator('.editor .cm-content')
    await editor.click()
    const open = { ...denied, spec: { ...(denied.spec as object), traffic: {} } }
    await page.keyboard.insertText(manifest(open))
    await page.getByRole('button', { name: 'Show its way' }).click()
    const now = page.getByRole('region', { name: 'Now', exact: true })
    const edited = page.getByRole('region', { name: 'With the edited manifests', exact: true })
    await eventually(() => now.textContent()).toContain('answer 403')
    expect(await edited.textContent()).toContain('pass')
    await page.getByRole('button', { name: 'What would the change do?' }).click()
    await eventually(() => main().textContent()).toMatch(/1 × deny 403 → allow/)
    expect(await seriousFaults(console)).toEqual([])
  })

  it('marks problems of an edited manifest in place, and completes fields', async () => {
    const { page } = console
    await console.show('#/try')
    const editor = page.locator('.editor .cm-content')
    await editor.click()
    await page.keyboard.press('ControlOrMeta+a')
    const text =
      'apiVersion: sluice.dev/v1alpha1\nkind: GatewayPolicy\nmetadata:\n  name: a\nspec:\n'
    await page.keyboard.insertText(`${text}  unknown: 1\n`)
    const line = page.locator('.editor .cm-line', { hasText: 'unknown' })
    await eventually(() => line.locator('.cm-lintRange-error').count()).toBe(1)
    await page.keyboard.insertText('  tra')
    await page.keyboard.press('Control+Space')
    await eventually(() => page.locator('.editor .cm-completionLabel').allTextContents()).toContain(
      'traffic',
    )
    await page.keyboard.press('Escape')
  })

  it('counts requests of models and what guards found', async () => {
    const chat = (content: string, model = 'm-1') =>
      gw.send(port, {
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
      })
    expect((await chat('hello')).status).toBe(200)
    expect((await chat('hello', 'unlisted')).status).toBe(200)
    expect((await chat('a secret')).status).toBe(403)
    await console.show('#/models')
    const usage = console.page.getByRole('region', { name: 'Usage', exact: true })
    await eventually(() => usage.textContent()).toContain('m-1')
    await eventually(() =>
      console.page.getByRole('region', { name: 'Guards', exact: true }).textContent(),
    ).toContain('Reject')
    expect(await seriousFaults(console)).toEqual([])
  })

  it('shows what requests have cost, to whom they belong, and which have no known price', async () => {
    const { page } = console
    const usage = page.getByRole('region', { name: 'Usage', exact: true })
    const traffic = page.getByRole('region', { name: 'Traffic', exact: true })
    const row = (model: string) => usage.locator('tr', { hasText: model }).textContent()
    await eventually(() => row('m-1')).toContain('$11.00')
    const models = page.getByRole('region', { name: 'Spend by model', exact: true })
    expect(await models.locator('tr', { hasText: 'm-1' }).textContent()).toContain('$11.00')
    const today = new Date().toISOString().slice(0, 10)
    const daily = page.getByRole('region', { name: 'Spend by day', exact: true })
    await eventually(() => daily.textContent()).toMatch(new RegExp(`${today}.*\\$11\\.00`))
    await eventually(() => row('unlisted')).toContain('no known price')
    const spend = page.getByRole('region', { name: 'Spend since the start', exact: true })
    await eventually(() => spend.textContent()).toMatch(/principal.*none.*\$11\.00/)
    await console.show('#/requests?route=default%2Fchat&status=200')
    await page.locator('.row').getByRole('link').last().click()
    await eventually(() => main().textContent()).toContain('cost11 USD (exact)')
    await console.show('#/')
    await eventually(() => traffic.textContent()).toMatch(/cost\$11\.00.*spend today\$11\.00/)
    await eventually(() => traffic.textContent()).toContain('Some models have no known price')
    expect(await seriousFaults(console)).toEqual([])
  })

  it('counts messages of MCP servers and calls of tools, with those that a rule refused', async () => {
    const client = await connectClient(port, '/tools')
    await client.callTool({ name: 'echo', arguments: { text: 'hi' } })
    await client.callTool({ name: 'delete', arguments: {} }).catch(() => undefined)
    await client.close()
    await console.show('#/tools')
    await eventually(() => main().textContent()).toContain('tools/call')
    await eventually(() =>
      console.page.getByRole('region', { name: 'Calls of tools', exact: true }).textContent(),
    ).toContain('echo')
    const calls = console.page.getByRole('region', { name: 'Calls of tools', exact: true })
    const row = (tool: string) => calls.locator('tr', { hasText: tool }).textContent()
    expect(await row('echo')).toContain('not refused')
    expect(await row('delete')).toMatch(/items200refusedDeny rule 0 matched: mcp\.tool\.name/)
    expect(await seriousFaults(console)).toEqual([])
  })

  it('counts MCP sessions, and names which messages the gateway answers for all targets', async () => {
    const { page } = console
    const client = await connectClient(port, '/tools')
    await client.listTools()
    const messages = page.getByRole('region', { name: 'Messages', exact: true })
    const targetOf = (method: string) =>
      messages.locator('tr', { hasText: method }).locator('td').nth(1).textContent()
    await eventually(() => messages.textContent()).toContain('tools/list')
    for (const method of ['initialize', 'tools/list']) {
      expect(await targetOf(method)).toBe('all, answered by the gateway')
    }
    expect(await targetOf('tools/call')).toBe('items')
    expect(await main().textContent()).not.toContain('unknown')
    const sessions = page.getByRole('region', { name: 'Sessions', exact: true })
    const row = sessions.locator('tr', { hasText: 'default/tools' })
    const begun = async () => Number(await row.locator('td').nth(1).textContent())
    const before = await begun()
    expect(before).toBeGreaterThan(0)
    await connectClient(port, '/tools').then((other) => other.close())
    await eventually(begun).toBe(before + 1)
    expect(await row.locator('td').nth(2).textContent()).toBe('0')
    await client.close()
    expect(await seriousFaults(console)).toEqual([])
  })
})
