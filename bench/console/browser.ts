/** The built console in Chromium, for benches, with the CPU time of its threads. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { root, serveFiles } from '../../test/hosts/files-server.ts'
import { partPath } from '../../test/support/parts.ts'

export interface BenchPage {
  readonly page: Page
  /** CPU time in ms of the thread of the page's process that has used most, by the beginning of its name. */
  threadMs(name: string): Promise<number>
  close(): Promise<void>
}

/** Opens a URL; if it is omitted, the console from a file server. */
export async function openPage(url?: string): Promise<BenchPage> {
  const server = url === undefined ? await serveFiles(join(root, 'dist', 'console')) : undefined
  const browser = await chromium.launch({
    executablePath: partPath('chromium'),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(url ?? `${server?.url}/index.html`)
  return {
    page,
    threadMs: async (name) => {
      const times = (await renderersOf(browser)).flatMap((pid) => threadTimes(pid, name))
      return Math.max(0, ...times) / 1e6
    },
    close: async () => {
      await browser.close()
      await server?.close()
    },
  }
}

async function renderersOf(browser: Browser): Promise<number[]> {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  return processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id)
}

function threadTimes(pid: number, name: string): number[] {
  const folder = `/proc/${pid}/task`
  return readdirSync(folder).flatMap((thread) => {
    const isNamed = readFileSync(join(folder, thread, 'comm'), 'latin1').startsWith(name)
    if (!isNamed) return []
    return [Number.parseInt(readFileSync(join(folder, thread, 'schedstat'), 'latin1'), 10)]
  })
}
