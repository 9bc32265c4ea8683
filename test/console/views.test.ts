/** Every view, from the recorded examples: what it shows, and that axe-core finds nothing serious. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWithParts } from '../support/parts.ts'
import { type ConsolePage, exampleLog, incidentLog } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

describeWithParts(['chromium'], 'the views of the console', () => {
  let console: ConsolePage
  beforeAll(async () => {
    console = await startConsole()
    await console.openLog('quickstart.jsonl', exampleLog('quickstart'))
  })
  afterAll(() => console?.close())

  const text = (selector: string) => console.page.locator(selector).textContent()
  const contains = (selector: string, part: string) =>
    eventually(() => text(selector)).toContain(part)

  it('overview: lists Gateways, proxies and kinds of the newest moment', async () => {
    await console.show('#/')
    await contains('main', 'Every condition is as it should be')
    await contains('.gateway', 'Gateway default/quickstart')
    await contains('.gateway', 'http: HTTP 8080, 2 routes')
    await contains('main', 'No proxy is connected at this moment.')
    await contains('main', '2 HTTPRoute')
  })

  it('overview: shows a refused version and a connected proxy at the moment of the mistake', async () => {
    await console.show('#/@24')
    await contains('.finding', 'HTTPRoute default/echo')
    await contains('.finding', 'spec.hostnamez: unknown field')
    await contains('main table', 'local')
    expect(await console.page.locator('.shell.past').count()).toBe(1)
  })

  it('topology: draws the way from the Gateway to endpoints, and a part of it on choice', async () => {
    const { page, show } = console
    await show('#/topology')
    const node = (name: string) => page.locator('.node', { hasText: name })
    await node('quickstart').waitFor()
    expect(await page.locator('.node').count()).toBe(10)
    expect(await page.locator('.edge').count()).toBe(9)
    await node('echo').last().click()
    await eventually(() => page.locator('.node').count()).toBe(5)
    await show('#/topology?as=list')
    await eventually(() => page.locator('.tree li').count()).toBe(10)
  })

  it('objects: filters by text, kind and health', async () => {
    const { page, show } = console
    await show('#/objects')
    await contains('.filters output', '9 of 9')
    await page.getByLabel('Text').fill('echo')
    await contains('.filters output', '2 of 9')
    await page.getByLabel('Kind').selectOption('HTTPRoute')
    await contains('.filters output', '1 of 9')
    expect(new URL(page.url()).hash).toBe('#/objects?text=echo&kind=HTTPRoute')
    await page.getByLabel('Text').fill('nothing has this name')
    await contains('main', 'None of 9 objects matches the filter.')
  })

  it('object: has a manifest with line numbers, readers, changes and resources', async () => {
    const { page, show } = console
    await show('#/object/HTTPRoute/default/shop?tab=manifest')
    await page.locator('.yaml .cm-content').waitFor()
    expect(await text('.yaml .cm-content')).toContain('kind: HTTPRoute')
    await show('#/object/Service/default/shop?tab=readers')
    await contains('main', 'HTTPRoute default/shop')
    await show('#/object/HTTPRoute/default/echo?tab=changes')
    await contains('main', 'spec.hostnamez')
    await show('#/object/HTTPRoute/default/shop?tab=wire')
    await contains('main', 'route/HTTPRoute/default/shop/0')
    await show('#/object/HTTPRoute/default/shop@3')
    await contains('main', 'it appears in a later event')
    await show('#/object/HTTPRoute/default/nobody')
    await contains('main', 'The log knows nothing about this object.')
  })

  it('timeline: filters events, opens one, and compares two moments', async () => {
    const { page, show } = console
    await show('#/timeline')
    await contains('.filters output', '30 of 30')
    await page.getByLabel('Type').selectOption('resource.refused')
    await contains('.filters output', '1 of 30')
    await page.locator('.row a').first().click()
    await page.getByRole('heading', { name: 'Event 24' }).waitFor()
    await contains('main pre', 'resource.refused')
    await show('#/diff@30?from=0')
    await contains('main', 'Events between')
    await contains('main', '+ listener/Gateway/default/quickstart/http')
  })

  it('moves through the log with the slider and with keys, and keeps the moment in the URL', async () => {
    const { page, show } = console
    await show('#/')
    await page.getByRole('slider').focus()
    await page.keyboard.press('Home')
    await eventually(() => new URL(page.url()).hash).toBe('#/@1')
    await contains('main', 'No Gateway of this controller exists at this moment.')
    await page.locator('main').focus()
    await page.keyboard.press(']')
    await eventually(() => new URL(page.url()).hash).toBe('#/@2')
    await page.keyboard.press('.')
    await eventually(() => new URL(page.url()).hash).toBe('#/')
    await page.keyboard.press('/')
    await page.keyboard.type('httproute echo')
    await page.getByRole('option', { name: 'HTTPRoute default/echo' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'HTTPRoute default/echo' }).waitFor()
  })

  it('says which view a link names if there is no such view', async () => {
    const { page } = console
    for (const hash of ['#/diff@3..9', '#/nothing']) {
      await page.goto(`${console.url}${hash}`)
      await contains('main', `There is no view “${hash.replace('#/nothing', 'nothing')}”.`)
    }
    await page.getByRole('link', { name: 'Go to the overview' }).click()
    await page.getByRole('heading', { name: 'Gateways' }).waitFor()
  })

  it('opens gzip files, and says what is wrong with files that are no log', async () => {
    const { page, openLog, show } = console
    await openLog('incident.jsonl.gz', gzipSync(await incidentLog()))
    await show('#/')
    await contains('.finding', 'HTTPRoute shop/cart')
    const bad = exampleLog('quickstart').split('\n').slice(0, 8).concat('{"position":9}').join('\n')
    await openLog('broken.jsonl', bad)
    await contains('.notices', 'broken.jsonl:9 is not an event of a log')
    await contains('.moment', 'newest event of 8')
    const file = { name: 'text.txt', mimeType: 'text/plain', buffer: Buffer.from('hello\n') }
    await page.setInputFiles('input[type=file]', file)
    await contains('.notices', 'text.txt:1 is not an event of a log: it is not JSON')
    await openLog('quickstart.jsonl', exampleLog('quickstart'))
  })

  it.each([
    '#/',
    '#/@24',
    '#/topology',
    '#/topology?as=list',
    '#/objects',
    '#/object/HTTPRoute/default/echo@24',
    '#/object/HTTPRoute/default/shop?tab=policies',
    '#/object/HTTPRoute/default/shop?tab=reads',
    '#/timeline',
    '#/event/26@26',
    '#/diff@30?from=0',
    '#/playground',
  ])(
    '%s has no serious fault of accessibility, in light and dark, at half of the width',
    async (hash) => {
      const { page } = console
      await page.goto(`${console.url}${hash}`)
      await page.reload()
      if (hash !== '#/playground')
        await console.openLog('quickstart.jsonl', exampleLog('quickstart'))
      await page.locator('main .content[aria-busy=false], main article').first().waitFor()
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await seriousFaults(console)).toEqual([])
      }
      await page.setViewportSize({ width: 640, height: 800 })
      const overflow = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
      expect(await page.evaluate(overflow)).toBe(false)
      await page.setViewportSize({ width: 1280, height: 800 })
    },
  )
})
