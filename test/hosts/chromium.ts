/** Headless Chromium, driven over its DevTools protocol with Node's own WebSocket. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { partPath } from '../support/parts.ts'
import { startProgram } from '../support/program.ts'
import { waitFor } from '../support/wait-for.ts'

/** One page of a browser that nothing else uses. */
export interface Page {
  open(url: string): Promise<void>
  /** The value of an expression in the page; promises are awaited. Throws what the page threw. */
  evaluate(expression: string): Promise<unknown>
  /** A PNG of the page, `width` by `height` pixels. */
  screenshot(width: number, height: number): Promise<Buffer>
  close(): Promise<void>
}

interface Answer {
  readonly id?: number
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** A connection to one target: a method and its parameters in, the result out. */
async function connect(url: string) {
  const socket = new WebSocket(url)
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.onmessage = ({ data }) => {
    const answer: Answer = JSON.parse(String(data))
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  }
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = () => reject(new Error(`no DevTools at ${url}`))
  })
  let last = 0
  const send = (method: string, params: object = {}) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const id = ++last
      waiting.set(id, ({ result, error }) => {
        waiting.delete(id)
        if (error === undefined) resolve(result ?? {})
        else reject(new Error(`${method}: ${error.message}`))
      })
      socket.send(JSON.stringify({ id, method, params }))
    })
  return { send, close: () => socket.close() }
}

/** Starts Chromium with an empty profile and one page. */
export async function startChromium(): Promise<Page> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-chromium-'))
  const log = join(folder, 'log')
  const program = startProgram(
    partPath('chromium'),
    [
      '--headless=new',
      '--no-sandbox', // root has none; the pages are ours
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--hide-scrollbars',
      '--remote-debugging-port=0',
      `--user-data-dir=${join(folder, 'profile')}`,
      'about:blank',
    ],
    log,
  )
  const port = await waitFor('Chromium', () => {
    if (program.hasExited()) throw new Error(`Chromium ended: ${program.lastLines()}`)
    return /DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(log, 'utf8'))?.[1]
  })
  const target = await waitFor('a page', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/json`)
    const targets = (await response.json()) as { type: string; webSocketDebuggerUrl: string }[]
    return targets.find(({ type }) => type === 'page')
  })
  const { send, close } = await connect(target.webSocketDebuggerUrl)
  const evaluate = async (expression: string) => {
    const params = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = (await send('Runtime.evaluate', params)) as {
      result: { value?: unknown }
      exceptionDetails?: { text: string; exception?: { description?: string } }
    }
    if (exceptionDetails === undefined) return result.value
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
  }
  return {
    open: async (url) => {
      await send('Page.navigate', { url })
      await waitFor(url, async () => {
        const ready = await evaluate('location.href + " " + document.readyState')
        return ready === `${url} complete`
      })
    },
    evaluate,
    screenshot: async (width, height) => {
      const metrics = { width, height, deviceScaleFactor: 1, mobile: false }
      await send('Emulation.setDeviceMetricsOverride', metrics)
      const { data } = await send('Page.captureScreenshot', { format: 'png' })
      return Buffer.from(String(data), 'base64')
    },
    close: async () => {
      close()
      await program.stop()
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
}
