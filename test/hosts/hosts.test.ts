/** The examples of examples/embedding, on the case files of test/core: every host, equal results. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWithParts, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Page, startChromium } from './chromium.ts'
import { type FilesServer, root, serveFiles } from './files-server.ts'
import { build, expectAllPass, expectAllRun, filesOf, hostSuites } from './suites.ts'

const example = (host: string) => join(root, 'examples', 'embedding', host)
const buildTime = 180_000

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-hosts-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('the core in plain Node, without the host code of the package [design.embed]', () => {
  it('passes all shared case files', () => {
    expectAllPass('the module in Node', process.execPath, [join(example('node'), 'main.mjs')])
  })
})

describeWithParts(['python3', 'python-wasmtime'], 'the core in Python [design.embed]', () => {
  it('passes all shared case files', () => {
    expectAllPass(
      'the module in Python',
      partPath('python3'),
      [join(example('python'), 'main.py')],
      {
        PYTHONPATH: partPath('python-wasmtime'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
    )
  })
})

describeWithParts(['go', 'wazero'], 'the core in Go [design.embed]', () => {
  it('passes all shared case files', { timeout: buildTime }, () => {
    const program = join(folder, 'go-host')
    const offline = { GOFLAGS: '-mod=readonly', GOPROXY: 'off', CGO_ENABLED: '0' }
    build(partPath('go'), ['build', '-o', program, '.'], example('go'), offline)
    expectAllPass('the module in Go', program, [])
  })
})

describeWithParts(['cargo', 'rust-wasmtime'], 'the core in Rust [design.embed]', () => {
  it('passes all shared case files', { timeout: buildTime }, () => {
    const target = partPath('rust-wasmtime')
    const args = ['build', '-q', '--release', '--locked', '--offline']
    const cargo = partPath('cargo')
    const PATH = `${dirname(cargo)}:${process.env.PATH}`
    build(cargo, args, example('rust'), { CARGO_TARGET_DIR: target, PATH })
    expectAllPass('the module in Rust', join(target, 'release', 'sluice-embedding'), [])
  })
})

describeWithParts(['chromium'], 'the core in a worker of a browser page [design.embed]', () => {
  let page: Page
  let server: FilesServer
  beforeAll(async () => {
    const suites = hostSuites['the module in Chromium']
    const files = Object.fromEntries(suites.map((suite) => [suite, filesOf(suite)]))
    server = await serveFiles(root, { '/cases.json': JSON.stringify(files) })
    page = await startChromium()
  })
  afterAll(async () => {
    await page?.close()
    await server?.close()
  })

  it('passes all shared case files', async () => {
    await page.open(`${server.url}/examples/embedding/browser/index.html`)
    const [state, text] = await waitFor('the worker', async () => {
      const expression = '(({ dataset, textContent }) => [dataset.state, textContent])(result)'
      const answer = (await page.evaluate(expression)) as [string | null, string]
      return answer[0] ? answer : undefined
    })
    expect(state, text).toBe('done')
    expectAllRun('the module in Chromium', JSON.parse(text))
    expect(server.missing).toEqual([])
  })
})
