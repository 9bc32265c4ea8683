/** The static page in a browser: what it shows for a prompt, and a screenshot. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { compileMask } from '../../src/core/regex-mask.ts'
import { countTokens, loadEncoding } from '../../src/core/tokens.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Page, startChromium } from './chromium.ts'
import { type FilesServer, root, serveFiles } from './files-server.ts'

const encodings = ['o200k_base', 'cl100k_base'] as const

describeWithParts(['chromium'], 'the playground [design.embed]', () => {
  let page: Page
  let server: FilesServer

  const text = (id: string) => page.evaluate(`document.getElementById('${id}').textContent`)
  const type = (id: string, value: string) =>
    page.evaluate(
      `(place => { place.value = ${JSON.stringify(value)};
        place.dispatchEvent(new Event('input', { bubbles: true })) })(document.getElementById('${id}'))`,
    )
  const tokens = (expected: number) =>
    waitFor(`${expected} tokens`, async () => (await text('tokens')) === String(expected))

  beforeAll(async () => {
    for (const name of encodings) loadEncoding(name)
    server = await serveFiles(join(root, 'dist', 'playground'))
    page = await startChromium()
    await page.open(`${server.url}/index.html`)
    await waitFor('the module', async () => {
      const state = await page.evaluate(`document.getElementById('figures').dataset.state`)
      if (state === 'failed') throw new Error(String(await text('problems')))
      return state === 'ready'
    })
  })
  afterAll(async () => {
    await page?.close()
    await server?.close()
  })

  it('shows an example prompt with all secrets masked, and the page fits the window', async () => {
    const marks = await page.evaluate(
      `[...document.querySelectorAll('#masked mark')].map(({ textContent }) => textContent)`,
    )
    expect(marks).toEqual([
      '<EMAIL_ADDRESS>',
      '<PHONE_NUMBER>',
      '<CREDIT_CARD>',
      '<SSN>',
      '<CA_SIN>',
      '<PATTERN_1>',
      '<PATTERN_2>',
    ])
    expect(await text('count')).toBe('7')
    expect(await text('hold')).toBe('at most 323 B')
    const prompt = String(await page.evaluate('document.getElementById("prompt").value'))
    expect(await text('tokens')).toBe(String(countTokens(prompt, 'o200k_base')))
    const picture = await page.screenshot(1200, 800)
    // The screenshot is kept for review; the content is checked in the page.
    mkdirSync(join(root, 'reports'), { recursive: true })
    writeFileSync(join(root, 'reports', 'playground.png'), picture)
    expect(picture.subarray(1, 4).toString()).toBe('PNG')
    expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([1200, 800])
    // An empty page of this size compresses to a few kilobytes.
    expect(picture.length).toBeGreaterThan(30_000)
    const overflow = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
    expect(await page.evaluate(overflow)).toBe(false)
  })

  it('masks the typed text and counts its tokens exactly like the package', async () => {
    const prompt = 'Écris à zoé@example.fr ou 4111-1111-1111-1111 <b>😀</b>'
    await type('patterns', '')
    await type('prompt', prompt)
    const outcome = compileMask([
      { builtin: 'CreditCard', replacement: '<CREDIT_CARD>' },
      { builtin: 'Email', replacement: '<EMAIL_ADDRESS>' },
    ])
    if (!outcome.ok) throw new Error(outcome.message)
    expect(await text('masked')).toBe(outcome.mask.apply(prompt).text)
    for (const name of encodings) {
      await type('encoding', name)
      await tokens(countTokens(prompt, name))
    }
  })

  it('masks only with the selected rules', async () => {
    await type('patterns', '')
    await type('prompt', 'a@b.example 078-05-1120')
    await page.evaluate(`document.querySelector('input[value=Email]').click()`)
    expect(await text('masked')).toBe('a@b.example <SSN>')
    await page.evaluate(`document.querySelector('input[value=Email]').click()`)
    expect(await text('masked')).toBe('<EMAIL_ADDRESS> <SSN>')
  })

  it('reports an invalid pattern and still applies the others', async () => {
    await type('prompt', 'abc')
    await type('patterns', 'a(?=b)\nc')
    expect(await text('problems')).toBe('a(?=b): lookaround at byte 1')
    expect(await text('masked')).toBe('ab<PATTERN_2>')
    expect(server.missing).toEqual([])
  })
})
