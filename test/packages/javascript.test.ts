/** The npm package @sluice/core, from the tarball that users install, in every host. */
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
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
import { startVendor, type Vendor } from './vendor.ts'

const run = promisify(execFile)
const testTime = 120_000
const source = join(root, 'packages', 'javascript')

let folder: string
let vendor: Vendor
let input: string

function command(program: string, args: readonly string[], cwd = folder): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd })
  expect(status, stdout + stderr).toBe(0)
  return stdout
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-javascript-'))
  command(process.execPath, [join(root, 'scripts', 'packages', 'javascript.mjs'), '.'])
  const [tarball = ''] = readdirSync(folder)
  const app = join(folder, 'app')
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }')
  command('npm', ['install', '--silent', '--offline', join(folder, tarball)], app)
  for (const name of ['@types', 'openai']) {
    symlinkSync(join(root, 'node_modules', name), join(app, 'node_modules', name))
  }
  cpSync(join(source, 'tests'), join(app, 'tests'), { recursive: true })
  vendor = await startVendor()
  const suites = hostSuites['`@sluice/core` in Node']
  const cases = Object.fromEntries(suites.map((suite) => [suite, filesOf(suite)]))
  input = JSON.stringify({ cases, vendor: vendor.url })
}, testTime)

afterAll(async () => {
  await vendor?.close()
  rmSync(folder, { recursive: true })
})

const installed = () => join(folder, 'app', 'node_modules', '@sluice', 'core')

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
    const { stdout } = await run(program, all, { cwd: join(folder, 'app'), maxBuffer: 1 << 24 })
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

/** The compiler errors of a strict program that has the package installed. */
function checkTypes(program: string, lib: string, types: string): void {
  const app = join(folder, 'app')
  writeFileSync(join(app, 'consumer.ts'), program)
  const strict = ['--strict', '--noEmit', '--skipLibCheck', 'false', '--target', 'es2024']
  const hosts = ['--module', 'nodenext', '--lib', lib, '--types', types]
  command(join(root, 'node_modules', '.bin', 'tsc'), [...strict, ...hosts, 'consumer.ts'], app)
}

/** The code that a bundler makes of a program. */
async function bundled(program: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: join(folder, 'app') },
    bundle: true,
    minify: true,
    format: 'esm',
    splitting: true,
    outdir: join(folder, 'unwritten'),
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

describe('the npm package for those who build with it', () => {
  it('has valid types in Node and in browsers', { timeout: testTime }, () => {
    const program = `
      import { Builtin, guardFetch, Mask, MaskStream, type Rule, Router, TokenCounter } from '@sluice/core'
      const rules: Rule[] = [Builtin.Email, 'a+', { pattern: 'b', replacement: '' }]
      const mask = new Mask(rules)
      export const text: string = new MaskStream(mask).push('a')
      export const bytes: ReadableStream<Uint8Array> | undefined =
        new Response('a').body?.pipeThrough(new MaskStream<Uint8Array>(mask))
      export const send: typeof fetch = guardFetch({ request: [{ rules }] })
      export const tokens: Promise<number> = TokenCounter.load().then((counter) => counter.count(''))
      export const route: number | undefined = new Router([{ id: 1 }]).match('/')
      // @ts-expect-error: there is no such builtin
      export const wrong = new Mask([{ builtin: 'Name' }])
    `
    checkTypes(program, 'esnext,dom,dom.iterable', '')
    checkTypes(program, 'esnext', 'node')
  })

  it('lets bundlers leave out what is not used', async () => {
    const wasm = (name: string) =>
      readFileSync(join(root, 'dist', name))
        .toString('base64')
        .slice(1000, 1100)
    const masks = await bundled(
      "import { Mask } from '@sluice/core'; globalThis.mask = new Mask(['a'])",
    )
    expect(masks).toContain(wasm('core.wasm'))
    expect(masks).not.toContain(wasm('core-texts.wasm'))
    expect(masks).not.toContain('gpt-4o')
    const all = await bundled("import * as core from '@sluice/core'; globalThis.core = core")
    expect(all).toContain(wasm('core-texts.wasm'))
    expect(masks.length).toBeLessThan(all.length * 0.6)
    // Vocabularies are files of their own.
    expect(all.length).toBeLessThan(400_000)
  })

  it('runs without compiling if the host provides the modules', () => {
    const program = `
      import { readFileSync } from 'node:fs'
      import { Builtin, Guards, init, Mask } from '@sluice/core'
      const open = (name) => readFileSync(new URL(import.meta.resolve('@sluice/core/' + name)))
      const compiled = ['core.wasm', 'core-texts.wasm'].map((name) => new WebAssembly.Module(open(name)))
      WebAssembly.Module = class { constructor() { throw new Error('compiling is forbidden') } }
      let problem
      try { new Mask([Builtin.Email]) } catch (error) { problem = error.message }
      init({ core: compiled[0], texts: compiled[1] })
      const guards = new Guards([{ rules: [Builtin.Email] }])
      const rewritten = guards.rewrite('Embeddings', 'request', '{"input":"a@b.example"}')
      console.log(problem, new Mask([Builtin.Email]).apply('a@b.example'), rewritten)
    `
    const printed = command(
      process.execPath,
      ['--input-type=module', '-e', program],
      join(folder, 'app'),
    )
    expect(printed).toBe('compiling is forbidden <EMAIL_ADDRESS> {"input":"<EMAIL_ADDRESS>"}\n')
  })

  it('guards the official client of OpenAI', { timeout: testTime }, async () => {
    const program = `
      import { Builtin, guardFetch } from '@sluice/core'
      import OpenAI from 'openai'
      const guards = [{ rules: [Builtin.Email] }]
      const fetch = guardFetch({ request: guards, response: guards })
      const client = new OpenAI({ apiKey: 'key', baseURL: '${vendor.url}/v1', fetch })
      const ask = (content, more) =>
        client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content }], ...more })
      const whole = await ask('say ada@example.com bob_AT_example.com')
      console.log(whole.received, whole.choices[0].message.content)
      let text = ''
      for await (const { choices } of await ask('say bob_AT_example.com.', { stream: true })) {
        text += choices[0].delta.content
      }
      console.log(text)
      await ask('fail for bob_AT_example.com').catch(({ status, message }) => console.log(status, message))
    `
    const args = ['--input-type=module', '-e', program]
    const { stdout } = await run(process.execPath, args, { cwd: join(folder, 'app') })
    const address = '<EMAIL_ADDRESS>'
    expect(stdout).toBe(
      `say ${address} bob_AT_example.com ${address} ${address}\n${address}.\n400 400 for ${address}\n`,
    )
  })

  it('names nothing that only Node has', () => {
    const files = readdirSync(installed(), { recursive: true, encoding: 'utf8' })
    const code = files.filter((name) => name.endsWith('.js'))
    expect(code.length).toBeGreaterThan(10)
    for (const name of code) {
      const text = readFileSync(join(installed(), name), 'utf8')
      expect(text, name).not.toMatch(
        /node:|\bprocess\.|\brequire\(|setImmediate|globalThis\.Buffer/,
      )
    }
  })

  it('does what each example of its page says', { timeout: testTime }, () => {
    const app = join(folder, 'app')
    const page = readFileSync(join(installed(), 'README.md'), 'utf8')
    const examples = [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code = '']) => code)
    expect(examples.length).toBeGreaterThan(7)
    for (const example of examples) {
      const printed = command(process.execPath, ['--input-type=module', '-e', example], app)
      const said = [...example.matchAll(/\/\/ (.*)$/gm)].map(([, text]) => `${text}\n`)
      expect(printed, example).toBe(said.join(''))
    }
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
  const app = join(folder, 'app')
  const worker = join(folder, name)
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
    const server = await serveFiles(join(folder, 'app'), { '/input.json': input })
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
