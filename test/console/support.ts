/** The console in a real browser, from a file server that knows nothing about it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { exportLine } from '../../src/log/export-lines.ts'
import { type FilesServer, root, serveFiles } from '../hosts/files-server.ts'
import { flowEvents } from '../support/flow.ts'
import { partPath } from '../support/parts.ts'

export interface ConsolePage {
  readonly page: Page
  readonly url: string
  /** Opens a log as a reader does, and waits until it is read. */
  openLog(name: string, content: string | Buffer): Promise<void>
  /** Shows the view of a fragment, such as `#/timeline@7`. */
  show(hash: string): Promise<void>
  /** Ids and places of what axe-core finds serious or critical. */
  seriousFaults(): Promise<string[]>
  close(): Promise<void>
}

/** Everything that the page or a worker reported; each is a failure of the test. */
const isNoise = (text: string) => text.includes('Failed to load resource')

export async function startConsole(viewport = { width: 1280, height: 800 }): Promise<ConsolePage> {
  const server: FilesServer = await serveFiles(join(root, 'dist', 'console'))
  const browser: Browser = await chromium.launch({
    executablePath: partPath('chromium'),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
  const page = await browser.newPage({ viewport, reducedMotion: 'reduce' })
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(String(error.stack)))
  page.on('console', (message) => {
    if (message.type() === 'error' && !isNoise(message.text())) errors.push(message.text())
  })
  const url = `${server.url}/index.html`
  await page.goto(url)
  return {
    page,
    url,
    openLog: async (name, content) => {
      const buffer = typeof content === 'string' ? Buffer.from(content) : content
      const file = { name, mimeType: 'application/octet-stream', buffer }
      await page.setInputFiles('input[type=file]', file)
      await page.locator('.time-bar .source', { hasText: name }).waitFor()
      await page.locator('.time-bar .source', { hasText: 'reading' }).waitFor({ state: 'detached' })
    },
    show: async (hash) => {
      await page.evaluate((to) => {
        ;(globalThis as unknown as { location: { hash: string } }).location.hash = to
      }, hash)
      await page.locator('main .content[aria-busy=false]').first().waitFor()
    },
    seriousFaults: async () => {
      await page.evaluate(readFileSync(axePath, 'utf8'))
      const { violations } = (await page.evaluate('axe.run()')) as {
        violations: { id: string; impact: string; nodes: { html: string }[] }[]
      }
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
    },
    close: async () => {
      await browser.close()
      await server.close()
      expect(errors).toEqual([])
      expect(server.missing).toEqual([])
    },
  }
}

const axePath = join(root, 'node_modules', 'axe-core', 'axe.min.js')

export const exampleLog = (name: string): string =>
  readFileSync(join(root, 'examples', name, 'recorded.jsonl'), 'utf8')

/** A log in which the deletion of a ReferenceGrant breaks a route. */
export const incidentLog = async (): Promise<string> =>
  (await flowEvents(join(import.meta.dirname, 'incident'))).map(exportLine).join('')

/** `expect.poll` with the time that a page on a busy machine may need. */
export const eventually = <Value>(read: () => Value | Promise<Value>) =>
  expect.poll(read, { timeout: 30_000 })
