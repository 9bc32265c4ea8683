/** The console of a running gateway: it follows the log, and goes on when the process comes back. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RunningGateway, sluice, startGateway } from '../support/gateway.ts'
import { gateway as edge, httpRoute, manifest } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

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

  it('says on every page what a pin holds, and compares what waits', async () => {
    const { page, show } = console
    const change = (command: string, ...args: string[]) =>
      sluice(
        command,
        '--log-file',
        running.logFile,
        '--reason',
        'year end',
        '--author',
        'ops',
        ...args,
      )
    const banner = page.getByRole('region', { name: 'Held configuration' })
    await show('#/')
    expect(await banner.count()).toBe(0)
    expect((await change('freeze', '--until', '2099-01-01T00:00:00Z')).code).toBe(0)
    await eventually(() => banner.textContent()).toMatch(
      /The configuration of event \d+ is held by ops: year end. Since .+, until 2099-01-01/,
    )
    running.write('second.yaml', manifest(httpRoute('second', { hostnames: ['waits.test'] })))
    running.remove('third.yaml')
    for (const hash of [
      '#/',
      '#/timeline',
      '#/requests',
      '#/keys',
      '#/object/HTTPRoute/default/second',
    ]) {
      await show(hash)
      await eventually(() => banner.textContent()).toMatch(
        /2 objects wait.+second \(generation 1 in force, generation 2 waits\)/,
      )
      expect(await banner.textContent()).toContain('its deletion waits')
    }
    await banner.getByRole('link', { name: 'Compare what waits' }).click()
    await eventually(() => page.locator('main ins').allTextContents()).toContain(
      '+     - waits.test',
    )
    expect(await page.locator('main del').allTextContents()).toContain('-   name: third')
    expect(await seriousFaults(console)).toEqual([])
    expect((await sluice('status', '--log-file', running.logFile)).stdout).toContain(
      'HTTPRoute default/second: generation 1 in force, generation 2 waits',
    )
    const held = await page.evaluate<string>('location.hash')
    await banner.getByRole('link', { name: 'what changed' }).click()
    await page.getByRole('heading', { name: /^Difference between/ }).waitFor()
    expect(await banner.textContent()).not.toContain('wait')
    await show(held)
    expect((await change('rollback', '--lift')).code).toBe(0)
    await eventually(() => page.locator('main').textContent()).toContain('no pin is set')
    expect(await banner.count()).toBe(0)
  })

  it('has no key or token in links', async () => {
    const hrefs = await console.page
      .locator('a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    expect(hrefs.length).toBeGreaterThan(5)
    expect(hrefs.filter((href) => /token|k=/.test(href ?? ''))).toEqual([])
  })
})
