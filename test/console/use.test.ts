/** Who uses what: tools, guards and keys, and requests that pages send through the gateway. */
import { hash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { rpc, served } from '../run/a2a-rig.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  mcpBackend,
  policy,
  routeByPath,
  toBackend,
} from '../support/manifests.ts'
import { connectClient } from '../support/mcp-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

const keyOf = (name: string) => `key-of-${name}`
const entry = (name: string, members: object) =>
  JSON.stringify({ keyHash: `sha256:${hash('sha256', keyOf(name))}`, ...members })
const keys = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'keys', labels: { keys: 'yes' } },
  data: {
    ann: entry('ann', { metadata: { team: 'red', owner: 'Ann' }, allowedModels: ['m-*'] }),
    bob: entry('bob', { metadata: { team: 'blue' }, disabled: true }),
    old: entry('old', { expiresAt: '2026-01-01T00:00:00Z' }),
  },
}

const notForBlue = 'mcp.tool.name == "echo" && apiKey.team == "blue"'

describeWithParts(['chromium'], 'the console of a gateway that teams use', async () => {
  const port = await freePort()
  const vendor = useFixture(startVendorA)
  const tools = useMcpServer({
    offer: (server) => {
      server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({
        content: [{ type: 'text', text: `echo of ${text}` }],
      }))
      server.registerTool('free', {}, () => ({ content: [] }))
      server.registerTool('delete', {}, () => ({ content: [] }))
    },
  })
  const deny = (...matchExpressions: readonly string[]) => ({
    action: 'Deny',
    policy: { matchExpressions },
  })
  const objects = () => [
    gateway(port),
    keys,
    policy('keys', 'HTTPRoute/chat', {
      traffic: { apiKeyAuthentication: { configMapSelector: { matchLabels: { keys: 'yes' } } } },
    }),
    aiBackend(
      'chat',
      { provider: { vendorA: { model: 'm-1' }, host: '127.0.0.1', port: vendor.port } },
      {
        ai: {
          promptGuard: {
            request: [
              { regex: { matches: ['secret'], action: 'Reject' }, response: { statusCode: 422 } },
              { regex: { builtins: ['Email'] } },
            ],
          },
        },
      },
    ),
    httpRoute('chat', {
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/v1' } }],
          backendRefs: [toBackend('chat')],
        },
      ],
    }),
    mcpBackend('tools', [{ name: 'items', static: { host: '127.0.0.1', port: tools.port } }]),
    routeByPath('tools'),
    // Nothing listens on this port.
    ...served('planner', { port: 9 }),
    policy('agents', 'HTTPRoute/tools', {
      traffic: { identity: { dimensions: { agent: 'request.headers["x-agent"]' } } },
    }),
    policy('tools', 'GatewayBackend/tools', {
      backend: { mcp: { authorization: deny(notForBlue, 'mcp.tool.name == "delete"') } },
    }),
  ]
  const gw = useGateway(() => ({
    manifests: { 'all.yaml': manifest(...objects()) },
    args: [
      ...['--console-address', '127.0.0.1:0', '--record', 'all'],
      ...['--console-actions', 'true'],
    ],
  }))
  let console: ConsolePage
  const main = () => console.page.locator('main')
  const region = (name: string) => console.page.getByRole('region', { name, exact: true })
  const row = (table: string, text: string) =>
    region(table).locator('tr', { hasText: text }).textContent()
  const chat = (content: string) =>
    gw.send(port, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${keyOf('ann')}` },
      body: JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content }] }),
    })

  beforeAll(async () => {
    const url = await waitFor('the URL', () => /^console: (http:\S+)$/m.exec(gw.stderr)?.[1])
    console = await startConsole(url)
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    expect((await chat('I am ann@example.com')).status).toBe(200)
    expect((await chat('a secret')).status).toBe(422)
    const client = await connectClient(port, '/tools', {}, { 'x-agent': 'planner' })
    await client.listTools()
    await client.callTool({ name: 'echo', arguments: { text: 'hi' } })
    await client.callTool({ name: 'free', arguments: {} })
    await client.close()
  })
  afterAll(() => console?.close())

  it('shows tools with who may see them, and their calls over time, in one click', async () => {
    await console.page.getByRole('link', { name: 'Tools', exact: true }).click()
    await eventually(() => row('MCP servers', 'items')).toMatch(/127\.0\.0\.1:\d+\/mcp.*[1-9]0$/)
    await eventually(() => row('Tools', 'echo')).toMatch(/default\/toolsif not \(.*10\d/)
    expect(await row('Tools', 'echo')).toContain(notForBlue)
    expect(await row('Tools', 'free')).toContain('everyone')
    await eventually(() => region('echo default/tools').locator('canvas').count()).toBe(2)
    expect(await seriousFaults(console)).toEqual([])
  })

  it('says in three clicks which agents saw a tool on a day, and its versions then', async () => {
    const { page } = console
    const today = await page.evaluate<string>('new Date().toISOString().slice(0, 10)')
    await console.show('#/')
    await page.getByRole('link', { name: 'Tools', exact: true }).click()
    await page.getByLabel('Day', { exact: true }).fill(today)
    await eventually(() => row('Listed by servers', 'delete')).toMatch(/new|approved/)
    expect(await row('Listed by servers', 'delete')).toContain('no one (Deny')
    await region('Listed by servers').getByRole('link', { name: 'echo', exact: true }).click()
    await eventually(() => row('Agents that saw it in this time', 'agent=planner')).toMatch(
      /agent=planner.*[1-9]\d*1$/,
    )
    const about = region('About echo')
    expect(await about.textContent()).toContain(`Who may see it: if not (${notForBlue})`)
    expect(await about.textContent()).toMatch(/event \d+ listed as version [0-9a-f]{12}/)
    expect(await about.locator('ins').allTextContents()).toContain('+   "name": "echo"')
    expect(await seriousFaults(console)).toEqual([])
    // Nothing had been listed a day before.
    await page.getByLabel('Day', { exact: true }).fill('2026-01-01')
    await eventually(() => main().textContent()).toContain('The log has no event before this time.')
    await console.show('#/tools?item=default%2Ftools+items+tools+echo&range=15m')
    const form = region('Take the approval back')
    await form.getByLabel('Reason').fill('asks for too much')
    await form.getByRole('button').click()
    await eventually(() => row('Listed by servers', 'echo')).toContain('new')
    await eventually(() => about.textContent()).toMatch(
      /approval taken back by \S+: asks for too much/,
    )
    await console.show('#/')
  })

  it('lists A2A agents with their requests beside tools', async () => {
    const base = `http://127.0.0.1:${port}/agents/planner`
    expect((await rpc(base, 'GetTask', { id: 't-1' })).body.error).toBeDefined()
    await console.show('#/tools?range=15m')
    await eventually(() => row('A2A agents', 'default/planner')).toMatch(
      /^default\/planner127\.0\.0\.1:9101\d+ ms/,
    )
    expect(await seriousFaults(console)).toEqual([])
  })

  it('shows decisions of guards over time and by rule, and tries a text without sending it', async () => {
    const { page } = console
    await page.getByRole('link', { name: 'Guards' }).click()
    await eventually(() => region('Decisions in this time').textContent()).toMatch(
      /Request regexMask1.*Request regexReject1|Request regexReject1.*Request regexMask1/,
    )
    const rules = region('By rule over time').locator('figure', {
      hasText: 'default/chat: request',
    })
    await eventually(() => rules.count()).toBe(2)
    const found = region('Found in recorded requests')
    await eventually(() => found.textContent()).toMatch(/request guard 1 \(regex\)Mask.*Email/)
    const requests = vendor.calls.length
    const tried = region('Try a text')
    await tried.getByLabel('Text').fill('write to bob@example.com')
    await eventually(() => tried.textContent()).toContain('write to <EMAIL_ADDRESS>')
    await tried.getByLabel('Text').fill('a secret')
    await eventually(() => tried.textContent()).toMatch(/refuses \(1 match\), with 422/)
    expect(vendor.calls.length).toBe(requests)
    expect(await seriousFaults(console)).toEqual([])
  })

  it('shows keys with state and use, and never a key or its hash', async () => {
    await console.page.getByRole('link', { name: 'Keys' }).click()
    await eventually(() => row('API keys', 'ann')).toMatch(
      /active.*Ann.*red.*never.*m-\*.*20\d\d-.*2/,
    )
    expect(await row('API keys', 'bob')).toMatch(/disabled.*blue.*not in 30 days/)
    expect(await row('API keys', 'old')).toContain('expired')
    const html = await main().innerHTML()
    expect(html).not.toContain('key-of-')
    expect(html).not.toContain(hash('sha256', keyOf('ann')).slice(0, 8))
    expect(await seriousFaults(console)).toEqual([])
  })

  it('chats with a model through the gateway with a key, and shows the bytes and what guards did', async () => {
    const { page } = console
    await console.show('#/playground?tab=chat')
    await page.getByLabel('Message', { exact: true }).fill('mail ann@example.com')
    await page.getByRole('button', { name: 'Send' }).click()
    await eventually(() => region('Bytes').textContent()).toContain('401')
    await page.getByLabel('Key of the client').fill(keyOf('ann'))
    await page.getByRole('button', { name: 'Start over' }).click()
    await page.getByLabel('Message', { exact: true }).fill('mail ann@example.com')
    await page.getByRole('button', { name: 'Send' }).click()
    await eventually(() => region('Bytes').textContent()).toMatch(
      /200.*text\/event-stream.*data: \{.*\[DONE\].*Complete after \d+ ms/s,
    )
    await eventually(() => region('Chat').locator('.assistant').textContent()).toMatch(/\w{2}/)
    expect(vendor.calls.at(-1)?.text).toContain('<EMAIL_ADDRESS>')
    expect(await region('Bytes').textContent()).not.toContain(keyOf('ann'))
    expect(await seriousFaults(console)).toEqual([])
    await page.getByRole('link', { name: 'What policies and guards did' }).click()
    await eventually(() => main().textContent()).toContain('backend.ai')
  })

  it('refuses to send requests to other ports than those of listeners', async () => {
    const send = (asked: object) =>
      console.page.evaluate<string>(`fetch('api/send', {
        method: 'POST',
        headers: { authorization: 'Bearer ' + localStorage.getItem('sluice-console-key') },
        body: ${JSON.stringify(JSON.stringify(asked))},
      }).then(async (response) => response.status + ' ' + (await response.text()))`)
    const asked = { scheme: 'http', port: vendor.port, method: 'GET', path: '/', headers: {} }
    expect(await send(asked)).toBe(
      `400 port: expected that of a listener of this gateway: ${port}\n`,
    )
    expect(await send({ ...asked, port, headers: { a: 'b\nc' } })).toMatch(/^400 Invalid character/)
    expect(await send({ ...asked, port, path: 1 })).toBe('400 path: expected a string\n')
    expect(await send({ ...asked, port })).toMatch(/^200 \{"status":404,.*"isComplete":true/s)
  })

  it('shows providers and MCP servers as nodes of the topology', async () => {
    const { page } = console
    await console.show('#/topology')
    const titleOf = (type: string) => page.locator(`.node.${type} title`).textContent()
    await eventually(() => titleOf('provider')).toContain('m-1')
    await eventually(() => titleOf('target')).toMatch(/target items, 127.*\/min requests/)
  })

  it('calls a tool by its schema, and lists only the tools that the client may see', async () => {
    const { page } = console
    await console.show('#/playground?tab=tools')
    await page.getByRole('button', { name: 'List the tools' }).click()
    await page.getByLabel('text', { exact: true }).fill('hello')
    expect(
      await page.getByLabel('Tool', { exact: true }).locator('option').allTextContents(),
    ).toContain('echo')
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await eventually(() => region('Call a tool').textContent()).toContain('echo of hello')
    expect(await region('Bytes').textContent()).toContain('"method":"tools/call"')
    expect(await seriousFaults(console)).toEqual([])
  })
})
