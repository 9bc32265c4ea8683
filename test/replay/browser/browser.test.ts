/** The fold in a Web Worker of a browser gives the digests that it gives in Node. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleForBrowsers } from '../../../scripts/browser-bundle.mjs'
import { exportLine } from '../../../src/control/log/export-lines.ts'
import { type Page, startChromium } from '../../hosts/chromium.ts'
import { type FilesServer, root, serveFiles } from '../../hosts/files-server.ts'
import { flowEvents } from '../../support/flow.ts'
import { describeWithParts } from '../../support/parts.ts'
import { digestsOf } from './digests.ts'

const foldersWith = (folder: string, file: string) =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(root, folder, name))
    .filter((path) => readdirSync(path).includes(file))

describe('a bundle of src/past/replay for browsers', () => {
  it('has no module of Node', async () => {
    const { metafile } = await bundleForBrowsers({
      entryPoints: ['src/past/replay/index.ts'],
      write: false,
    })
    const inputs = Object.values(metafile.inputs).flatMap(({ imports }) => imports)
    const outputs = Object.values(metafile.outputs).flatMap(({ imports }) => imports)
    expect(inputs.length).toBeGreaterThan(300)
    expect(inputs.filter(({ path }) => path.startsWith('node:'))).toEqual([])
    expect(outputs).toEqual([])
  })
})

describeWithParts(['chromium'], 'the fold in a Web Worker [design.replay]', () => {
  let page: Page
  let server: FilesServer
  const folder = mkdtempSync(join(tmpdir(), 'sluice-browser-fold-'))

  beforeAll(async () => {
    await bundleForBrowsers({ entryPoints: ['test/replay/browser/worker.ts'], outdir: folder })
    const core = readFileSync(join(root, 'dist', 'core.wasm'), 'base64')
    const script = `
      const core = Uint8Array.fromBase64(${JSON.stringify(core)})
      window.fold = (name, text) => new Promise((resolve, reject) => {
        const worker = new Worker('worker.js', { type: 'module' })
        worker.onmessage = ({ data }) => { worker.terminate(); resolve(data) }
        worker.onerror = ({ message }) => reject(new Error(message))
        worker.postMessage({ core, name, text })
      })`
    server = await serveFiles(folder, {
      '/index.html': '<!doctype html><script src="page.js"></script>',
      '/page.js': script,
    })
    page = await startChromium()
    await page.open(`${server.url}/index.html`)
  })
  afterAll(async () => {
    await page?.close()
    await server?.close()
    rmSync(folder, { recursive: true })
  })

  const foldInPage = (name: string, text: string) =>
    page.evaluate(`fold(${JSON.stringify(name)}, ${JSON.stringify(text)})`)

  it.each(foldersWith('examples', 'recorded.jsonl'))(
    'gives the digests of Node after each event of %s',
    async (example) => {
      const text = readFileSync(join(example, 'recorded.jsonl'), 'utf8')
      const digests = digestsOf(example, text)
      expect(digests.length).toBeGreaterThan(5)
      expect(await foldInPage(example, text)).toEqual({ digests })
    },
  )

  it('gives the digests of Node for the manifests of every case in test/flow', async () => {
    const cases = foldersWith('test/flow', 'in.yaml')
    expect(cases.length).toBeGreaterThan(50)
    for (const name of cases) {
      const text = (await flowEvents(name)).map(exportLine).join('')
      const digests = digestsOf(name, text)
      expect([name, await foldInPage(name, text)]).toEqual([name, { digests }])
    }
  })

  it('reports a line that is not an event', async () => {
    const { error } = (await foldInPage('log.jsonl', '{"position":1}')) as { error: string }
    expect(error).toContain('log.jsonl:1 is not an event of a log')
  })
})
