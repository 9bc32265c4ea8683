/** A page of another origin in the same browser, which has the cookie of the console. */

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FilesServer, root, serveFiles } from '../hosts/files-server.ts'
import { type RunningGateway, startGateway } from '../support/gateway.ts'
import { gateway as edge, manifest } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, startConsole } from './support.ts'

const urlsOf = ({ stderr }: RunningGateway) =>
  [...stderr.matchAll(/^console: (http:\S+)$/gm)].map(([, url = '']) => url)

describeWithParts(['chromium'], 'a page of another origin', () => {
  let running: RunningGateway
  let console: ConsolePage
  let foreign: FilesServer
  let page: Page
  let origin: string
  let key: string
  beforeAll(async () => {
    const files = { 'gateway.yaml': manifest(edge(0)) }
    running = await startGateway({ manifests: files, args: ['--console-address', '127.0.0.1:0'] })
    const url = await waitFor('the URL', () => urlsOf(running)[0])
    console = await startConsole(url)
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    origin = new URL(url).origin
    key = await console.page.evaluate<string>("localStorage.getItem('sluice-console-key')")
    foreign = await serveFiles(root, { '/page.html': '<!doctype html><title>foreign</title>' })
    page = await console.page.context().newPage()
    await page.goto(`${foreign.url}/page.html`)
  })
  afterAll(async () => {
    await page?.close()
    await foreign?.close()
    await console?.close()
    await running?.dispose()
  })

  /** What a script of the page gets: the text of the response, or the name of the error. */
  const read = (path: string, init: object = {}) =>
    page.evaluate<string>(
      `fetch(${JSON.stringify(origin + path)}, ${JSON.stringify(init)}).then(
        async (response) => response.type + ' ' + response.status + ' ' + (await response.text()),
        (error) => error.name)`,
    )
  const withKey = () => ({ headers: { authorization: `Bearer ${key}` } })

  it('can read neither files nor data, with the cookie and without', async () => {
    for (const path of ['/', '/main.js', '/api/about', '/api/events']) {
      expect(await read(path)).toBe('TypeError')
      expect(await read(path, { credentials: 'include' })).toBe('TypeError')
      expect(await read(path, { mode: 'no-cors', credentials: 'include' })).toMatch(
        /^(opaque 0 |TypeError)$/,
      )
    }
  })

  it('can read nothing even with the key, which the page of the console can', async () => {
    expect(key.length).toBeGreaterThan(20)
    expect(await read('/api/about', withKey())).toBe('TypeError')
    expect(await read('/api/commands/simulate', { method: 'POST', ...withKey() })).toBe('TypeError')
    const own = await console.page.evaluate<number>(
      `fetch('/api/about', ${JSON.stringify(withKey())}).then(({ status }) => status)`,
    )
    expect(own).toBe(200)
  })

  it('cannot load the page in a frame, or its scripts', async () => {
    const script = `new Promise((resolve) => {
      const script = document.createElement('script')
      script.src = '${origin}/main.js'
      script.onload = () => resolve('loaded')
      script.onerror = () => resolve('refused')
      document.head.append(script)
    })`
    expect(await page.evaluate(script)).toBe('refused')
    await page.evaluate(`{
      const frame = document.createElement('iframe')
      frame.src = '${origin}/'
      document.body.append(frame)
    }`)
    await eventually(() => page.frames().length).toBe(2)
    const [, frame] = page.frames()
    await eventually(() => frame?.url()).toMatch(/^chrome-error:/)
  })

  it('cannot use up the token', async () => {
    const url = await waitFor('the next URL', () => urlsOf(running)[1])
    const { pathname, search } = new URL(url)
    expect(await read(`${pathname}${search}`)).toBe('TypeError')
    expect(await read(`${pathname}${search}`, { mode: 'no-cors' })).toMatch(
      /^(opaque 0 |TypeError)$/,
    )
    const fresh = await console.page.context().newPage()
    await fresh.goto(url)
    await fresh.locator('.shell').waitFor()
    await fresh.close()
  })
})
