/** The built console in a browser, from a file server that knows nothing about it; for tests and pictures. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { exportLine } from '../../src/control/log/export-lines.ts'
import { root, serveFiles } from '../hosts/files-server.ts'
import { flowEvents } from '../support/flow.ts'

export interface ConsolePage {
  readonly page: Page
  readonly url: string
  /** Opens a log as a reader does, and waits until it is read. */
  openLog(name: string, content: string | Buffer): Promise<void>
  /** Shows the view of a fragment, such as `#/timeline@7`. */
  show(hash: string): Promise<void>
  /** Throws if the page reported an error, or asked for a file that does not exist. */
  close(): Promise<void>
}

/** Starts a page of the Chromium at a path. `url` is that of a console, if one is served already. */
export async function startPage(executablePath: string, url?: string): Promise<ConsolePage> {
  const server = url === undefined ? await serveFiles(join(root, 'dist', 'console')) : undefined
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
  const viewport = { width: 1280, height: 800 }
  const context = await browser.newContext({ viewport, reducedMotion: 'reduce' })
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(String(error.stack)))
  page.on('console', (message) => {
    const isAboutRequest = message.text().includes('Failed to load resource')
    if (message.type() === 'error' && !isAboutRequest) errors.push(message.text())
  })
  const address = url ?? `${server?.url}/index.html`
  await page.goto(address)
  return {
    page,
    url: address,
    openLog: async (name, content) => {
      const buffer = typeof content === 'string' ? Buffer.from(content) : content
      const file = { name, mimeType: 'application/octet-stream', buffer }
      await page.setInputFiles('input[type=file]', file)
      await page.locator('.time-bar .source', { hasText: name }).waitFor()
      const working = page.locator('.time-bar .source', { hasText: /reading|computing/ })
      await working.waitFor({ state: 'detached' })
    },
    show: async (hash) => {
      await page.evaluate((to) => {
        ;(globalThis as unknown as { location: { hash: string } }).location.hash = to
      }, hash)
      await page.locator('main .content[aria-busy=false], main article').first().waitFor()
    },
    close: async () => {
      await browser.close()
      await server?.close()
      // A page without a key asks how to sign in, and learns that no process serves it.
      const missing = (server?.missing ?? []).filter((path) => path !== '/api/sign-in')
      const faults = [...errors, ...missing.map((path) => `missing: ${path}`)]
      if (faults.length > 0) throw new Error(faults.join('\n'))
    },
  }
}

export const exampleLog = (name: string): string =>
  readFileSync(join(root, 'examples', name, 'recorded.jsonl'), 'utf8')

/** A log in which the deletion of a ReferenceGrant breaks a route. */
export const incidentEvents = () => flowEvents(join(import.meta.dirname, 'incident'))

export const incidentLog = async (): Promise<string> =>
  (await incidentEvents()).map(exportLine).join('')
