/** The npm package @sluice/core, from the tarball that users install, in every host. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startChromium } from '../hosts/chromium.ts'
import { root, serveFiles } from '../hosts/files-server.ts'
import { expectAllRun, filesOf, type HostName, hostSuites } from '../hosts/suites.ts'
import { freePort } from '../support/free-port.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { startProgram } from '../support/program.ts'
import { waitFor } from '../support/wait-for.ts'
import { installPackage } from './javascript-package.ts'
import { startVendor, type Vendor } from './vendor.ts'

const run = promisify(execFile)
const testTime = 120_000
const suites = hostSuites['`@sluice/core` in Node']

let app: string
let vendor: Vendor
let input: string

beforeAll(async () => {
  app = installPackage()
  cpSync(join(root, 'packages', 'javascript', 'tests'), join(app, 'tests'), { recursive: true })
  vendor = await startVendor()
  const cases = Object.fromEntries(suites.map((suite) => [suite, filesOf(suite)]))
  input = JSON.stringify({ cases, vendor: vendor.url })
}, testTime)

afterAll(async () => {
  await vendor?.close()
  rmSync(app, { recursive: true })
})

function expectAll(host: HostName, result: string): void {
  const { cases, use } = JSON.parse(result)
  expect(use.failures).toEqual([])
  expect(use.checked.length).toBeGreaterThan(10)
  expectAllRun(host, cases)
}

/** Runs the program of a host that takes its input from a URL. */
async function expectProgram(
  host: HostName,
  program: string,
  args: readonly string[],
): Promise<void> {
  const server = createServer((_, response) => response.end(input))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const all = [...args, join('tests', 'main.mjs'), `http://127.0.0.1:${port}`]
    const { stdout } = await run(program, all, { cwd: app, maxBuffer: 1 << 24 })
    expectAll(host, stdout)
  } finally {
    server.close()
  }
}

const binary = (name: string) => join(partPath('javascript-hosts'), 'node_modules', '.bin', name)

describe('the npm package in Node [design.embed]', () => {
  it('passes the shared case files and guards calls', { timeout: testTime }, async () => {
    await expectProgram('`@sluice/core` in Node', process.execPath, [])
  })
})

describeWithParts(['javascript-hosts'], 'the npm package in other hosts [design.embed]', () => {
  it('passes the shared case files and guards calls in Bun', { timeout: testTime }, async () => {
    await expectProgram('`@sluice/core` in Bun', binary('bun'), ['run'])
  })

  it('passes the shared case files and guards calls in Deno', { timeout: testTime }, async () => {
    await expectProgram('`@sluice/core` in Deno', binary('deno'), ['run', '--no-remote', '-A'])
  })

  it('passes the shared case files and guards calls in workerd', {
    timeout: testTime,
  }, async () => {
    expectAll('`@sluice/core` in workerd', await runInWorkerd('workerd'))
  })
})

/** Bundles as wrangler does: modules of WebAssembly stay files. Returns what the worker answers. */
async function runInWorkerd(name: string): Promise<string> {
  const worker = join(app, name)
  const { metafile } = await build({
    absWorkingDir: app,
    entryPoints: ['tests/worker.mjs'],
    outdir: worker,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    loader: { '.wasm': 'copy' },
    metafile: true,
  })
  const files = Object.keys(metafile.outputs).map((path) => path.split('/').at(-1) ?? '')
  // The first module is the one that workerd starts.
  const modules = files
    .sort((a, b) => (a.endsWith('.js') ? -1 : a < b ? -1 : 1))
    .map((file) =>
      file.endsWith('.wasm')
        ? `(name = "./${file}", wasm = embed "${file}")`
        : `(name = "${file}", esModule = embed "${file}")`,
    )
  const port = await freePort()
  writeFileSync(
    join(worker, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (modules = [${modules.join(', ')}], compatibilityDate = "2026-01-01")),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);`,
  )
  const program = startProgram(
    binary('workerd'),
    ['serve', join(worker, 'config.capnp')],
    join(worker, 'log'),
  )
  try {
    return await waitFor('workerd', async () => {
      if (program.hasExited()) throw new Error(`workerd ended: ${program.lastLines()}`)
      const response = await fetch(`http://127.0.0.1:${port}`, {
        method: 'POST',
        body: input,
      }).catch(() => undefined)
      return response?.text()
    })
  } finally {
    await program.stop()
  }
}

describeWithParts(['chromium'], 'the npm package in a page of a browser [design.embed]', () => {
  it('passes the shared case files and guards calls', { timeout: testTime }, async () => {
    const server = await serveFiles(app, { '/input.json': input })
    const page = await startChromium()
    try {
      await page.open(`${server.url}/tests/page.html`)
      const [state, text] = await waitFor('the page', async () => {
        const expression = '(({ dataset, textContent }) => [dataset.state, textContent])(result)'
        const answer = (await page.evaluate(expression)) as [string | null, string]
        return answer[0] ? answer : undefined
      })
      expect(state, text).toBe('done')
      expectAll('`@sluice/core` in Chromium', text)
    } finally {
      await page.close()
      await server.close()
    }
  })
})
