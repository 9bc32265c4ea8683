/** Questions about traffic that the console answers from the first page, with the clicks that they take. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

describeWithParts(['chromium'], 'the console of a gateway whose upstream is down', async () => {
  const [port, deadPort] = [await freePort(), await freePort()]
  const upstream = useUpstream()
  const objects = (backend: string) =>
    manifest(
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('payments', deadPort),
      httpRoute('shop', { rules: [{ backendRefs: [toBackend(backend)] }] }),
    )
  const gw = useGateway(() => ({
    manifests: { 'all.yaml': objects('main') },
    args: ['--console-address', '127.0.0.1:0'],
  }))
  let console: ConsolePage
  beforeAll(async () => {
    const url = await waitFor('the URL', () => /^console: (http:\S+)$/m.exec(gw.stderr)?.[1])
    console = await startConsole(url)
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    for (let at = 0; at < 20; at++) await gw.send(port, { path: '/shop' })
    gw.write('all.yaml', objects('payments'))
    await gw.sendUntil(port, { path: '/shop' }, ({ status }) => status === 503)
    for (let at = 0; at < 30; at++) await gw.send(port, { path: '/shop' })
  })
  afterAll(() => console?.close())
  const region = (name: string) => console.page.getByRole('region', { name, exact: true })
  const problems = () => console.page.getByRole('region', { name: /^Problems of traffic/ })
  const overflow = () =>
    console.page.evaluate<number>(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    )

  it('shows on the first page that an upstream is down, in red, with its requests in one click', async () => {
    await console.show('#/')
    const finding = problems().locator('.finding.problem')
    await eventually(() => finding.textContent()).toContain('backend default/payments: all')
    expect(await finding.textContent()).toMatch(/UpstreamFailure \(503\).*route default\/shop/)
    expect(await region('Traffic').locator('.signals .bad').textContent()).toMatch(/^\d.* %$/)
    expect(await seriousFaults(console)).toEqual([])
    await finding.getByRole('link', { name: 'default/shop' }).click()
    await eventually(() => console.page.locator('.row').count()).toBeGreaterThan(0)
  })

  it('leads from the rise of errors to the change that caused it in one click', async () => {
    const { page } = console
    await console.show('#/')
    const errors = page.locator('figure.chart', { hasText: 'Errors per second' })
    const mark = errors.getByRole('link', { name: 'Changed: HTTPRoute default/shop' }).last()
    await mark.click()
    await eventually(() => page.locator('main').textContent()).toMatch(
      /HTTPRoute default\/shop.*What it changed/,
    )
  })

  it('hatches the times in which a proxy is missing, on every chart', async () => {
    const { page } = console
    await page.route('**/api/series?**', async (route) => {
      const response = await route.fetch()
      const answer = (await response.json()) as { from: string; to: string }
      const half = new Date((Date.parse(answer.from) + Date.parse(answer.to)) / 2).toISOString()
      const missing = [{ proxy: 'edge-2', from: half, to: answer.to }]
      await route.fulfill({ response, json: { ...answer, missing } })
    })
    await console.show('#/timeline')
    await console.show('#/')
    const charts = page.locator('figure.chart')
    await eventually(() => page.locator('.bands div').count()).toBeGreaterThan(2)
    expect(await page.locator('.bands div').count()).toBe(await charts.count())
    const band = await page.locator('.bands div').first().boundingBox()
    const plot = await charts.first().locator('.plot').boundingBox()
    expect((band?.width ?? 0) / (plot?.width ?? 1)).toBeGreaterThan(0.3)
    expect((band?.width ?? 0) / (plot?.width ?? 1)).toBeLessThan(0.55)
    expect(await page.locator('.missing-proxies').textContent()).toContain('edge-2')
    expect(await seriousFaults(console)).toEqual([])
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })

  it('draws the failing way through the topology in red, with its rate, in one click', async () => {
    const { page } = console
    await console.show('#/')
    await page.getByRole('link', { name: 'Topology', exact: true }).click()
    const payments = page.locator('.node.backend.problem', { hasText: 'payments' })
    await eventually(() => payments.locator('title').textContent()).toMatch(
      /\d\/(?:s|min) requests, 100 % failed/,
    )
    await eventually(() => page.locator('.edge.problem text').first().textContent()).toMatch(
      /\d\/(?:s|min)$/,
    )
    expect(await seriousFaults(console)).toEqual([])
  })

  it('sends no requests of pages unless it is allowed to', async () => {
    await console.show('#/playground?tab=chat')
    await eventually(() => console.page.locator('main').textContent()).toContain(
      'Start the gateway with `--console-actions true`',
    )
  })

  it('keeps the range of time in the URL of every view', async () => {
    const { page } = console
    await console.show('#/')
    await page.getByLabel('Range of time').selectOption('6h')
    await eventually(() => page.url()).toContain('range=6h')
    await page.getByRole('link', { name: 'Models & money' }).click()
    await eventually(() => page.url()).toContain('#/models?range=6h')
    const old = Date.now() - 3_600_000
    await console.show(`#/?range=${old - 1_000_000}-${old}`)
    await eventually(() => region('Traffic').textContent()).toContain('No request ended')
    await eventually(() => problems().textContent()).toContain('No request')
    expect(await page.getByLabel('Range of time').inputValue()).toBe('between')
  })

  it('is whole at every width, and has no serious faults in either theme', async () => {
    const { page } = console
    await console.show('#/')
    for (const width of [360, 800, 2_560]) {
      await page.setViewportSize({ width, height: 900 })
      await eventually(() => page.locator('figure canvas').count()).toBeGreaterThan(2)
      await eventually(overflow).toBe(0)
      const inside = await page
        .locator('main')
        .evaluate((main) => (main as unknown as { scrollWidth: number }).scrollWidth)
      expect(inside).toBeLessThanOrEqual(width)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await seriousFaults(console)).toEqual([])
      }
    }
  })
})
