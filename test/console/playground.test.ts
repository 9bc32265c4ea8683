/** The playground: what it shows is what the package gives. */
import { afterAll, beforeAll, it } from 'vitest'
import { createRateLimiter } from '../../src/engines/core/rate.ts'
import { compileMask } from '../../src/engines/core/regex-mask.ts'
import { countTokens, loadEncoding } from '../../src/engines/core/tokens.ts'
import { describeWithParts } from '../support/parts.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, startConsole } from './support.ts'

const encodings = ['o200k_base', 'cl100k_base'] as const

describeWithParts(['chromium'], 'the playground [design.embed]', () => {
  let console: ConsolePage
  beforeAll(async () => {
    for (const name of encodings) loadEncoding(name)
    console = await startConsole()
    await console.page.goto(`${console.url}#/playground`)
    await console.page.reload()
  })
  afterAll(() => console?.close())

  const has = (id: string, text: string) =>
    eventually(() => console.page.locator(`#${id}`).textContent()).toBe(text)

  it('masks an example prompt, and counts its tokens', async () => {
    const { page } = console
    await eventually(() => page.locator('#masked mark').allTextContents()).toEqual([
      '<EMAIL_ADDRESS>',
      '<PHONE_NUMBER>',
      '<CREDIT_CARD>',
      '<SSN>',
      '<CA_SIN>',
      '<PATTERN_1>',
      '<PATTERN_2>',
    ])
    await has('count', '7')
    await has('hold', 'at most 1245 B')
    const prompt = await page.locator('#prompt').inputValue()
    await has('tokens', String(countTokens(prompt, 'o200k_base')))
  })

  it('masks the typed text and counts its tokens exactly like the package', async () => {
    const { page } = console
    const prompt = 'Écris à zoé@example.fr ou 4111-1111-1111-1111 <b>😀</b>'
    await page.locator('#patterns').fill('')
    await page.locator('#prompt').fill(prompt)
    const outcome = compileMask([
      { builtin: 'CreditCard', replacement: '<CREDIT_CARD>' },
      { builtin: 'Email', replacement: '<EMAIL_ADDRESS>' },
    ])
    if (!outcome.ok) throw new Error(outcome.message)
    await has('masked', outcome.mask.apply(prompt).text)
    for (const name of encodings) {
      await page.locator('#encoding').selectOption(name)
      await has('tokens', String(countTokens(prompt, name)))
    }
  })

  it('masks only with the selected rules', async () => {
    const { page } = console
    await page.locator('#prompt').fill('a@b.example 078-05-1120')
    await page.locator('input[value=Email]').uncheck()
    await has('masked', 'a@b.example <SSN>')
    await page.locator('input[value=Email]').check()
    await has('masked', '<EMAIL_ADDRESS> <SSN>')
  })

  it('reports an invalid pattern and still applies the others', async () => {
    const { page } = console
    await page.locator('#prompt').fill('abc')
    await page.locator('#patterns').fill('a(?=b)\nc')
    await eventually(() => page.locator('#pattern-problems').textContent()).toContain('a(?=b): ')
    await has('masked', 'ab<PATTERN_2>')
  })

  it('evaluates expressions with variables, and reports their problems', async () => {
    const { page } = console
    await page.getByRole('button', { name: 'Expressions' }).click()
    await has('result', 'true')
    await page.locator('#expression').fill('request.headers["x-team"] + "!" + base64.encode("é")')
    await has('result', '"blue!w6k="')
    await page.locator('#expression').fill('request.path +')
    await eventually(() => page.locator('#result.bad').count()).toBe(1)
    await page.locator('#expression').fill('sha256.encode(request.method)')
    await page.locator('#variables').fill('[]')
    await has('result', 'The variables are not a JSON object.')
  })

  it('shows how many requests a rate limit admits', async () => {
    const { page } = console
    await page.getByRole('button', { name: 'Rate limits' }).click()
    await page.getByLabel('Requests', { exact: true }).fill('2')
    await page.getByLabel('Burst').fill('0')
    const limit = createRateLimiter().limit(1, { rate: 2, unit: 'Seconds', burst: 0 })
    const admitted = [0, 250, 500, 750].filter((now) => limit.take(1, now)).length
    const cells = page.locator('#admitted tbody tr').first().locator('td')
    await eventually(() => cells.allTextContents()).toEqual([
      '1',
      String(admitted),
      String(4 - admitted),
    ])
  })
})
