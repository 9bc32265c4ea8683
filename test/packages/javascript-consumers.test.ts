/** What those who build with the npm package @sluice/core get: types, parts to leave out, examples, and memory. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../hosts/files-server.ts'
import { command, installPackage } from './javascript-package.ts'
import { startVendor, type Vendor } from './vendor.ts'

const run = promisify(execFile)
const testTime = 120_000

let app: string
const installed = () => join(app, 'node_modules', '@sluice', 'core')
let vendor: Vendor

beforeAll(async () => {
  app = installPackage()
  vendor = await startVendor()
}, testTime)

afterAll(async () => {
  await vendor?.close()
  rmSync(app, { recursive: true })
})

/** The compiler errors of a strict program that has the package installed. */
function checkTypes(program: string, lib: string, types: string): void {
  writeFileSync(join(app, 'consumer.ts'), program)
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false']
  const hosts = ['--target', 'es2023', '--module', 'nodenext', '--lib', lib, '--types', types]
  const args = [...strict, '--noEmit', ...hosts, 'consumer.ts']
  command(join(root, 'node_modules', '.bin', 'tsc'), args, app)
}

/** The code that a bundler makes of a program. */
async function bundled(program: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: app },
    bundle: true,
    minify: true,
    format: 'esm',
    splitting: true,
    outdir: join(app, 'unwritten'),
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
    checkTypes(program, 'es2023,dom,dom.iterable', '')
    checkTypes(program, 'es2023', 'node')
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
    // Vocabularies are in separate files.
    expect(all.length).toBeLessThan(448_000)
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
    const printed = command(process.execPath, ['--input-type=module', '-e', program], app)
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
    const { stdout } = await run(process.execPath, args, { cwd: app })
    const address = '<EMAIL_ADDRESS>'
    expect(stdout).toBe(
      `say ${address} bob_AT_example.com ${address} ${address}\n${address}.\n400 400 for ${address}\n`,
    )
  })

  it('works again after a trap of the module, which is thrown once', () => {
    const program = `
      // A module whose only function traps: (func (export "trap") unreachable)
      const wasm = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 8, 1, 4, 116, 114, 97, 112, 0, 0, 10, 5, 1, 3, 0, 0, 11]
      const { trap } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(wasm))).exports
      let next
      const Real = WebAssembly.Instance
      WebAssembly.Instance = class {
        constructor(module) {
          this.exports = { ...new Real(module).exports }
          for (const name of ['stream_push', 'regex_is_match', 'match_request', 'texts_push', 'tokens_count', 'rate_take']) {
            const call = this.exports[name]
            this.exports[name] = call && ((...given) => (next === name ? trap((next = undefined)) : call(...given)))
          }
        }
      }
      const { Guards, Mask, Pattern, RateLimiter, Router, TokenCounter } = await import('@sluice/core')
      const mask = new Mask(['a+'])
      const pattern = new Pattern('a+')
      const router = new Router([{ id: 7, path: '/a.*', pathType: 'regex' }])
      const guards = new Guards([{ rules: ['a+'] }])
      const counter = await TokenCounter.load()
      const limiter = new RateLimiter({ rate: 5 })
      const uses = {
        stream_push: () => mask.apply('a b'),
        regex_is_match: () => pattern.isMatch('a'),
        match_request: () => router.match('/abc'),
        texts_push: () => guards.rewrite('Embeddings', 'request', '{"input":"a b"}'),
        tokens_count: () => counter.count('hello world'),
        rate_take: () => limiter.take('a').remaining,
      }
      const results = Object.entries(uses).map(([name, use]) => {
        use()
        next = name
        let thrown
        try { use() } catch (error) { thrown = error.name }
        return [thrown, use()]
      })
      console.log(JSON.stringify(results))
    `
    const args = ['--input-type=module', '-e', program]
    expect(JSON.parse(command(process.execPath, args, app))).toEqual([
      ['CoreTrap', '<masked> b'],
      ['CoreTrap', true],
      ['CoreTrap', 7],
      ['GuardsError', '{"input":"<masked> b"}'],
      ['CoreTrap', 2],
      ['CoreTrap', 4],
    ])
  })

  it('frees memory of objects that are collected', () => {
    const program = `
      const memories = []
      const Real = WebAssembly.Instance
      WebAssembly.Instance = class {
        constructor(module) {
          this.exports = new Real(module).exports
          memories.push(this.exports.memory)
        }
      }
      const { Builtin, Guards, Mask, MaskStream, Pattern } = await import('@sluice/core')
      const used = () => memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0)
      for (let round = 0; round < 100; round++) {
        for (let turn = 0; turn < 50; turn++) {
          const rules = [Builtin.Email, 'key-[0-9]{' + (turn + 1) + ',99}']
          new MaskStream(new Mask(rules)).push('text')
          new Pattern(rules[1]).isMatch('text')
          new Guards([{ rules }]).rewriter('Completions', 'stream').push(new Uint8Array(10))
        }
        gc()
        await new Promise((resolve) => setTimeout(resolve))
      }
      console.log(used())
    `
    const args = ['--expose-gc', '--input-type=module', '-e', program]
    const bytes = Number(command(process.execPath, args, app))
    expect(bytes).toBeGreaterThan(0)
    expect(bytes).toBeLessThan(20_000_000)
  })

  it('names nothing that only Node has', () => {
    const files = readdirSync(installed(), {
      recursive: true,
      encoding: 'utf8',
    })
    const code = files.filter((name) => name.endsWith('.js'))
    expect(code.length).toBeGreaterThan(10)
    for (const name of code) {
      const text = readFileSync(join(installed(), name), 'utf8')
      expect(text, name).not.toMatch(
        /node:|\bprocess\.|\brequire\(|setImmediate|globalThis\.Buffer/,
      )
    }
  })

  it('does what each example of its pages says', { timeout: testTime }, () => {
    const pages = [join(installed(), 'README.md'), join(root, 'docs', 'embedding.md')].map((page) =>
      readFileSync(page, 'utf8'),
    )
    const examples = pages.map((page) =>
      [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code = '']) => code),
    )
    expect(examples.map(({ length }) => length)).toEqual([9, 1])
    for (const example of examples.flat()) {
      const printed = command(process.execPath, ['--input-type=module', '-e', example], app)
      const said = [...example.matchAll(/\/\/ (.*)$/gm)].map(([, text]) => `${text}\n`)
      expect(printed, example).toBe(said.join(''))
    }
  })
})
