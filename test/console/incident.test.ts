/** A route broke because a ReferenceGrant was deleted: from the page to the cause. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWithParts } from '../support/parts.ts'
import { type ConsolePage, incidentLog } from './browser.ts'
import { eventually, startConsole } from './support.ts'

describeWithParts(['chromium'], 'the console shows an incident', () => {
  let console: ConsolePage
  beforeAll(async () => {
    console = await startConsole()
    await console.openLog('last-night.jsonl', await incidentLog())
  })
  afterAll(() => console?.close())

  it('leads from the problem on the overview to the deleted grant', async () => {
    const { page } = console
    const problem = page.locator('.finding', { hasText: 'HTTPRoute shop/cart' })
    await eventually(() => problem.textContent()).toContain(
      'ResolvedRefs is False (RefNotPermitted)',
    )
    await problem.getByRole('link', { name: /^event \d+$/ }).click()
    await page.getByRole('heading', { name: /^Event \d+$/ }).waitFor()
    const title = page.locator('header.title')
    expect(await title.textContent()).toContain('resource.deleted')
    expect(await title.textContent()).toContain('ReferenceGrant pay/allow')
    const changes = page.locator('.status-diff', { hasText: 'HTTPRoute shop/cart' })
    await changes.waitFor()
    expect(await changes.locator('ins').allTextContents()).toEqual([
      expect.stringContaining('ResolvedRefs=False RefNotPermitted'),
    ])
    expect(await changes.locator('del').allTextContents()).toEqual([
      expect.stringContaining('ResolvedRefs=True'),
    ])
  })

  it('answers on the route since when, by which event, and when it held before', async () => {
    const { page, show } = console
    await show('#/object/HTTPRoute/shop/cart')
    const row = page.locator('.conditions tr', { hasText: 'ResolvedRefs' })
    expect(await row.textContent()).toContain('resource.deleted ReferenceGrant pay/allow')
    await row.getByRole('button').click()
    const flips = page.locator('.flips li')
    await eventually(() => flips.count()).toBe(2)
    expect(await flips.first().textContent()).toContain('broken by')
    await page.getByRole('button', { name: 'RefNotPermitted', exact: true }).click()
    await eventually(() => flips.count()).toBe(1)
    expect(await flips.first().textContent()).toContain('holds since')
    await page.getByRole('button', { name: 'True', exact: true }).click()
    await eventually(() => flips.count()).toBe(2)
    await flips
      .last()
      .getByRole('link', { name: /^event/ })
      .click()
    await eventually(() => page.locator('.time-bar').textContent()).toContain('Back to the newest')
    await show(`#/${new URL(page.url()).hash.replace(/^#\/event\/\d+/, '')}`)
    await eventually(() => page.locator('main').textContent()).not.toContain('RefNotPermitted')
  })

  it('shows the policies field by field, in force and overridden', async () => {
    await console.show('#/object/HTTPRoute/shop/cart?tab=policies')
    const rows = console.page.locator('tbody tr', { hasText: 'traffic.headerModifiers' })
    await eventually(() => rows.count()).toBe(2)
    expect(await rows.first().textContent()).toMatch(/in force.*GatewayPolicy shop\/special/s)
    expect(await rows.last().textContent()).toMatch(/overridden.*GatewayPolicy shop\/base/s)
  })
})
