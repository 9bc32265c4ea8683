/** Questions that the console answers from its first page, as a new user asks them, with the clicks that they take. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

describeWithParts(['chromium'], 'a new user of the console', async () => {
  const port = await freePort()
  const upstream = useUpstream()
  const vendor = useFixture(startVendorA)
  const catalog = join(useFolder('sluice-prices-'), 'catalog.json')
  const prices = { rates: { input: '1000000', output: '0' } }
  writeFileSync(catalog, JSON.stringify({ providers: { openai: { models: { 'm-1': prices } } } }))
  const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } })
  const closed = (expression: string) =>
    policy('closed', 'HTTPRoute/shop', {
      traffic: { authorization: { action: 'Deny', policy: { matchExpressions: [expression] } } },
    })
  const objects = (backend: string) => [
    gateway(port),
    staticBackend('main', upstream.port),
    httpRoute('shop', { rules: [{ backendRefs: [toBackend('main')] }] }),
    httpRoute('broken', {
      rules: [{ matches: [prefix('/broken')], backendRefs: [toBackend(backend)] }],
    }),
    closed('request.path == "/admin"'),
    secret('keys', { ann: JSON.stringify({ key: 'key-of-ann', metadata: { team: 'red' } }) }),
    policy('keys', 'HTTPRoute/chat', {
      traffic: {
        apiKeyAuthentication: { secretRef: { name: 'keys' } },
        identity: { dimensions: { team: 'apiKey.team' } },
      },
    }),
    aiBackend('chat', { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } }),
    httpRoute('chat', { rules: [{ matches: [prefix('/v1')], backendRefs: [toBackend('chat')] }] }),
  ]
  const gw = useGateway(() => ({
    manifests: { 'all.yaml': manifest(...objects('main')) },
    args: [
      ...['--console-address', '127.0.0.1:0', '--record', 'all'],
      ...['--model-catalog', catalog],
    ],
  }))
  let console: ConsolePage
  let clicks = 0
  const main = () => console.page.locator('main')
  const click = async (target: Locator) => {
    clicks++
    await target.click()
  }
  const choose = async (duration: string) => {
    clicks++
    await console.page.locator('.time-bar .range select').selectOption(duration)
  }
  const view = (name: string) =>
    console.page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name, exact: true })
  const fromTheFirstPage = async () => {
    await console.show('#/')
    clicks = 0
  }

  beforeAll(async () => {
    const url = await waitFor('the URL', () => /^console: (http:\S+)$/m.exec(gw.stderr)?.[1])
    console = await startConsole(url)
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    await gw.send(port, { path: '/shop' })
    await gw.send(port, { path: '/admin' })
    await gw.send(port, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', authorization: 'Bearer key-of-ann' },
      body: JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content: 'hi' }] }),
    })
  })
  afterAll(() => console?.close())

  it('learns in one click which change broke a route', async () => {
    gw.write('all.yaml', manifest(...objects('gone')))
    await gw.sendUntil(port, { path: '/broken' }, ({ status }) => status === 500)
    await fromTheFirstPage()
    const problem = main().locator('.finding', { hasText: 'HTTPRoute default/broken' })
    await click(problem.getByRole('link', { name: /^event \d+$/ }))
    await console.page.getByRole('heading', { name: /^Event \d+$/ }).waitFor()
    const title = await console.page.locator('header.title').textContent()
    expect(title).toContain('HTTPRoute default/broken')
    expect(clicks).toBe(1)
  })

  it('learns in two clicks why a request was refused', async () => {
    await fromTheFirstPage()
    await click(view('Requests'))
    const row = console.page.locator('.row', { hasText: '/admin' })
    await click(row.getByRole('link').first())
    await eventually(() => main().textContent()).toContain('For another outcome')
    const step = console.page.locator('tr', { hasText: 'traffic.authorization' })
    expect(await step.textContent()).toContain('GatewayPolicy default/closed')
    expect(clicks).toBe(2)
  })

  it('learns in two clicks what a team has spent this week', async () => {
    await fromTheFirstPage()
    await click(view('Models & money'))
    await choose('7d')
    const spend = console.page.getByRole('region', { name: 'Spend by team, user or key' })
    await eventually(() => spend.locator('tr', { hasText: 'team=red' }).textContent()).toContain(
      '$11',
    )
    expect(clicks).toBe(2)
  })

  it('tries in three clicks a change on the traffic of the last day', async () => {
    const { page } = console
    const type = async () => {
      await page.locator('.editor .cm-content').focus()
      await page.keyboard.insertText(manifest(closed('request.path == "/nowhere"')))
    }
    const button = page.getByRole('button', { name: 'What would the change do?' })
    await fromTheFirstPage()
    await click(view('Try'))
    await type()
    await choose('24h')
    await click(button)
    await eventually(() => main().textContent()).toMatch(/1 × deny 403 → allow/)
    expect(clicks).toBe(3)
    expect(await seriousFaults(console)).toEqual([])
    // Other times have other traffic.
    await console.show('#/try?range=1000-2000')
    await button.click()
    await eventually(() => main().textContent()).toContain('0 recorded:')
  })
})
