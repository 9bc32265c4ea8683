/** The documentation site as `npm run docs -- --version` builds it, in a browser. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { placePages } from '../../scripts/site/versions.mjs'
import { type ConsolePage, startPage } from '../console/browser.ts'
import { type FilesServer, root, serveFiles } from '../hosts/files-server.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

/** Builds the pages of v0.1.0 with the generator. */
async function buildSite(folder: string): Promise<void> {
  const options = ['--version', 'v0.1.0', '--output', folder]
  await promisify(execFile)(process.execPath, [join(root, 'scripts', 'docs.mjs'), ...options])
}

/** Adds a newer version, which the menu of the earlier pages must offer although they were built before it. */
function addVersion(folder: string, site: string, version: string): void {
  const built = join(folder, version)
  mkdirSync(built)
  writeFileSync(join(built, 'index.html'), `<h1>${version}</h1>`)
  placePages(built, site, version)
}

/** Opens the search, which hears the key once the page has loaded its scripts, and writes a text there. */
async function search({ page }: Pick<ConsolePage, 'page'>, text: string): Promise<void> {
  const box = page.locator('.VPLocalSearchBox input')
  const open = async (): Promise<boolean> => {
    if (!(await box.isVisible())) await page.keyboard.press('/')
    return box.isVisible()
  }
  await expect.poll(open, { timeout: 30_000 }).toBe(true)
  await box.fill(text)
}

describeWithParts(['chromium'], 'the documentation site in a browser', () => {
  let folder: string
  let server: FilesServer
  let opened: ConsolePage
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-site-browser-'))
    const site = join(folder, 'site')
    await buildSite(site)
    addVersion(folder, site, 'v0.2.0')
    server = await serveFiles(site)
  }, 300_000)
  afterAll(async () => {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  beforeEach(async () => {
    opened = await startPage(partPath('chromium'), `${server.url}/v0.1.0/guides/failover.html`)
  })
  afterEach(() => opened.close())

  it('opens another version from the menu of a page, without a file that is missing', async () => {
    const { page } = opened
    const menu = page.locator('.VPNavBar .VPFlyout', { hasText: 'v0.1.0' })
    await menu.getByRole('button').hover()
    const items = menu.locator('.menu a')
    await items.first().waitFor()
    expect(await items.allTextContents()).toEqual(['v0.2.0', 'v0.1.0'])
    await items.first().click()
    await page.waitForURL(`${server.url}/v0.2.0/`)
    expect(await page.locator('h1').textContent()).toBe('v0.2.0')
    expect(server.missing).toEqual([])
  })

  it('opens another version from the menu of a small screen', async () => {
    const { page } = opened
    await page.setViewportSize({ width: 400, height: 800 })
    await page.getByRole('button', { name: 'mobile navigation' }).click()
    const menu = page.locator('.VPNavScreenMenuGroup', { hasText: 'v0.1.0' })
    await menu.getByRole('button').click()
    await menu.getByRole('link', { name: 'v0.2.0' }).click()
    await page.waitForURL(`${server.url}/v0.2.0/`)
  })

  it.each([
    ['openai', 'Connect a client'],
    ['langchain', 'Connect a client'],
    ['budget', 'A budget for each team'],
    ['401', 'If it does not work'],
  ])('finds %s', async (word, found) => {
    const { page } = opened
    await search(opened, word)
    const first = page.locator('.VPLocalSearchBox .result').first()
    await expect.poll(() => first.textContent()).toMatch(new RegExp(found, 'i'))
  })

  it('finds a page by its text, and requests nothing from other servers', async () => {
    const { page } = opened
    const requested: string[] = []
    page.on('request', (request) => requested.push(new URL(request.url()).origin))
    await page.reload()
    await search(opened, 'endpoint picker')
    await page.locator('.VPLocalSearchBox .result', { hasText: 'Inference pools' }).first().click()
    await page.waitForURL(/\/v0\.1\.0\/(guides\/)?inference/)
    expect(new Set(requested)).toEqual(new Set([server.url]))
  })
})
