/** What a user of the npm package gets: the packed files alone. */
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from './files-server.ts'

const consumer = `
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { compileMask, compileRegex, createIoCore, createRateLimiter, createRateMemory } from 'sluice/core'

const outcome = compileMask([{ builtin: 'Email', replacement: '<EMAIL>' }])
assert.equal(outcome.mask.apply('to ada@example.com').text, 'to <EMAIL>')
assert.equal(compileRegex('(?=a)').ok, false)
const core = createIoCore({ memoryPages: 16 })
assert.equal(core.createRouteTable().size, 0)
for (const options of [{}, { shared: createRateMemory() }]) {
  const limit = createRateLimiter(options).limit(1, { rate: 1, unit: 'Hours' })
  assert.deepEqual([limit.take(1, 0), limit.take(1, 0)], [true, false])
}
const open = (name) => readFileSync(fileURLToPath(import.meta.resolve(name)))
const modules = ['core.wasm', 'core-rate-shared.wasm', 'core-texts.wasm'].map((name) => open('sluice/' + name))
const imports = modules.map((bytes) => WebAssembly.Module.imports(new WebAssembly.Module(bytes)))
const { version } = JSON.parse(open('sluice/core.abi.json'))
console.log(JSON.stringify({ imports: imports.map(({ length }) => length), version }))
`

const translating = `
import assert from 'node:assert/strict'
import { LlmError, requestTexts, textsOfResponse, translateRequest, usageOf } from 'sluice/messages'

const asked = { model: 'm', max_tokens: 9, stream: true, system: 'Be kind', messages: [{ role: 'user', content: 'Hi' }] }
assert.deepEqual(requestTexts(asked).map(({ role, content }) => [role, content]), [['system', 'Be kind'], ['user', 'Hi']])
const request = translateRequest(asked, 'Messages', 'completions', { model: 'gpt-5' })
assert.deepEqual([request.body.model, request.body.max_completion_tokens, request.isStream], ['gpt-5', 9, true])

const whole = { id: '1', choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 2 } }
const message = request.response(JSON.stringify(whole))
assert.equal(message.stop_reason, 'end_turn')
assert.equal(textsOfResponse(message, 'Messages')[0].content, 'Hello')
assert.deepEqual(usageOf(message, 'Messages'), { input: 3, uncachedInput: 3, output: 2 })
assert.equal(request.error(429, '{"error":{"message":"slow down"}}').error.message, 'slow down')

const event = (body) => 'data: ' + (typeof body === 'string' ? body : JSON.stringify(body)) + '\\n\\n'
const delta = { id: '1', choices: [{ index: 0, delta: { content: 'Hello' } }] }
const last = { id: '1', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: whole.usage }
const sent = Buffer.from(event(delta) + event(last) + event('[DONE]'))
const results = new Set()
for (let cut = 1; cut < sent.length; cut++) {
  const stream = request.stream()
  const pieces = [stream.push(sent.subarray(0, cut)), stream.push(sent.subarray(cut)), stream.end()]
  results.add(Buffer.concat(pieces).toString())
  assert.equal(stream.usage.output, 2)
}
assert.equal(results.size, 1)
const [text] = results
assert.match(text, /"text_delta","text":"Hello"[^]*event: message_stop/)
const cutOff = request.stream()
const lost = Buffer.concat([cutOff.push(sent.subarray(0, 90)), cutOff.end(true)]).toString()
assert.match(lost, /event: error/)
assert.doesNotMatch(lost, /message_stop/)

const isRefusal = (error) => error instanceof LlmError && error.status === 400
assert.throws(() => translateRequest({ model: 'm', messages: 3 }, 'Completions', 'messages'), isRefusal)
assert.throws(() => request.response('<html>'), (error) => error instanceof LlmError && error.status === 502)
`

const typed = `
import { compileMask, createRateLimiter, type RateLimit } from 'sluice/core'
import { type ChatFormatName, translateRequest, type Usage } from 'sluice/messages'
const limit: RateLimit = { rate: 1, unit: 'Hours' }
export const admitted: boolean = createRateLimiter().limit(1, limit).take(1, 0)
const outcome = compileMask([{ builtin: 'Email', replacement: '' }])
export const masked: string | undefined = outcome.ok ? outcome.mask.apply('').text : undefined
const format: ChatFormatName = 'Responses'
export const usage: Usage | undefined = translateRequest({}, format, 'converse').stream().usage
// @ts-expect-error: there is no such format
export const unknown = translateRequest({}, 'Contents', 'converse')
// @ts-expect-error: there is no such unit
export const wrong: RateLimit = { rate: 1, unit: 'Weeks' }
`

const folding = `
import { createEvent } from 'sluice/events'
import type { PolicyDefinition } from 'sluice/policy'
import { type RecordedEvent, replay } from 'sluice/replay'
export type Order = keyof PolicyDefinition
export async function whoDiffers(events: readonly RecordedEvent[]): Promise<readonly number[]> {
  const { fold, published, different } = await replay(events, { checkRegex: () => undefined })
  const shop = { kind: 'HTTPRoute', namespace: 'default', name: 'shop' } as const
  fold.statusOf(shop)
  const reads = fold.graph.readsOf('http-route', shop)
  return published > reads.length ? different.map(({ version }) => version) : []
}
// @ts-expect-error: a log has positions
export const wrong: RecordedEvent = { event: createEvent }
`

let folder: string

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

/** The compiler errors of a strict program that has these packages installed besides ours. */
function problemsOf(source: string, packages: readonly string[]): string {
  const installed = join(folder, 'node_modules')
  for (const name of packages) {
    if (!existsSync(join(installed, name)))
      symlinkSync(join(root, 'node_modules', name), join(installed, name))
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'consumer.ts'), source)
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2024']
  const lib = ['--lib', 'esnext,dom', '--types', 'node', '--skipLibCheck', 'false']
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  return run(tsc, [...options, ...lib, 'consumer.ts'], folder)
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-package-'))
  run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], root)
  const [tarball] = readdirSync(folder)
  const place = join(folder, 'node_modules', 'sluice')
  mkdirSync(place, { recursive: true })
  run('tar', ['-xzf', join(folder, tarball ?? ''), '-C', place, '--strip-components=1'], folder)
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('the package without its dependencies [design.embed]', () => {
  it('runs the core and provides the raw modules', () => {
    writeFileSync(join(folder, 'consumer.mjs'), consumer)
    const printed = run(process.execPath, ['consumer.mjs'], folder)
    expect(JSON.parse(printed)).toEqual({ imports: [0, 1, 0], version: 1 })
  })

  it('translates requests to models and their responses', () => {
    writeFileSync(join(folder, 'translating.mjs'), translating)
    expect(run(process.execPath, ['translating.mjs'], folder)).toBe('')
  })

  it('has valid types for the core and for messages', () => {
    // A host of TypeScript brings Node's types; they are its own dependency.
    expect(problemsOf(typed, ['@types'])).toBe('')
  })
})

describe('the package with its dependencies', () => {
  it('has valid types for replay, events and policies, including declaration files', () => {
    expect(problemsOf(folding, ['@bufbuild', '@types', 'xstate'])).toBe('')
  })
})
