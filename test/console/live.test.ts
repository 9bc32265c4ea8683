/** The console of a running gateway: it follows the log, and goes on when the process comes back. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RunningGateway, startGateway } from '../support/gateway.ts'
import { gateway as edge, httpRoute, manifest } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, startConsole } from './support.ts'

describeWithParts(['chromium'], 'the console of a running gateway', () => {
  let running: RunningGateway
  let console: ConsolePage
  beforeAll(async () => {
    const files = { 'gateway.yaml': manifest(edge(0), httpRoute('first', {})) }
    running = await startGateway({ manifests: files, args: ['--console-address', '127.0.0.1:0'] })
    const url = await waitFor(
      'the URL of the console',
      () => /console: (http:\S+)/.exec(running.stderr)?.[1],
    )
    console = await startConsole(url)
  })
  afterAll(async () => {
    await console?.close()
    await running?.dispose()
  })

  it('begins with the overview, and nothing else, at the URL that was printed', async () => {
    const { page } = console
    await eventually(() => page.locator('main').textContent()).toContain('Gateway default/edge')
    expect(await page.locator('#console').textContent()).not.toMatch(/Loading the console|k=/)
    expect(new URL(page.url()).hash).toBe('')
  })

  it('shows the present, and a change as soon as it happens', async () => {
    const { page, show } = console
    await page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    await show('#/objects?kind=HTTPRoute')
    await eventually(() => page.locator('.virtual-list').textContent()).toContain('default/first')
    running.write('second.yaml', manifest(httpRoute('second', {})))
    await eventually(() => page.locator('.virtual-list').textContent()).toContain('default/second')
    await show('#/@1')
    await eventually(() => page.locator('main').textContent()).not.toContain('Gateway default/edge')
    expect(new URL(page.url()).search).toBe('')
  })

  it('adds new events to the timeline while an earlier moment is shown', async () => {
    const { page, show } = console
    await show('#/timeline@1?text=third')
    await eventually(() => page.locator('main').textContent()).toContain('No event matches')
    running.write('third.yaml', manifest(httpRoute('third', {})))
    await eventually(() => page.locator('.virtual-list').textContent()).toContain('default/third')
  })

  it('has no key or token in links', async () => {
    const hrefs = await console.page
      .locator('a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    expect(hrefs.length).toBeGreaterThan(5)
    expect(hrefs.filter((href) => /token|k=/.test(href ?? ''))).toEqual([])
  })
})
