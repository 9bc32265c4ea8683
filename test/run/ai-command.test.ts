/** `sluice ai`: official SDKs, one key, and vendors whose keys are in the environment. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { freePort, launcher, sluice } from '../support/gateway.ts'
import { type Program, startProgram } from '../support/program.ts'
import { json } from '../support/vendors/vendor.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { startVendorC } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'

const a = useFixture(startVendorA)
const c = useFixture(startVendorC)
const state = mkdtempSync(join(tmpdir(), 'sluice-ai-'))
const port = await freePort()
const output = join(state, 'output')
let program: Program
let key = ''

beforeAll(async () => {
  const urls = [
    `openai=http://127.0.0.1:${a.port}/v1`,
    `anthropic=http://127.0.0.1:${c.port}`,
  ].flatMap((url) => ['--base-url', url])
  const budget = ['--budget', '20requests/day']
  const args = ['ai', '--from-env', '--port', String(port), ...budget, ...urls]
  program = startProgram(launcher, args, output, {
    PATH: process.env.PATH ?? '',
    XDG_STATE_HOME: state,
    OPENAI_API_KEY: 'key-of-a',
    ANTHROPIC_API_KEY: 'key-of-c',
    GEMINI_API_KEY: 'key-of-d',
    MISTRAL_API_KEY: 'key-of-mistral',
    DEEPSEEK_API_KEY: 'key-of-deepseek',
  })
  key = await waitFor('readiness', () => {
    const text = readFileSync(output, 'utf8')
    if (program.hasExited()) throw new Error(text)
    return /^ready$/m.test(text) ? /OPENAI_API_KEY=(\S+)/.exec(text)?.[1] : undefined
  })
})
afterAll(async () => {
  await program.stop()
  rmSync(state, { recursive: true, force: true })
})

const baseURL = `http://127.0.0.1:${port}`
const openai = (apiKey: string) =>
  new OpenAI({ baseURL: `${baseURL}/v1`, apiKey, maxRetries: 0 }).chat.completions
const messages = [{ role: 'user' as const, content: 'I am ann@example.com' }]

describe('sluice ai', () => {
  it('takes no port of another gateway on this machine', () => {
    const text = readFileSync(output, 'utf8')
    const taken = [...text.matchAll(/^(?:readiness|metrics|admin|console): (\S+)$/gm)]
    expect(taken.map(([, url = '']) => new URL(url).hostname)).toEqual(Array(3).fill('127.0.0.1'))
    expect(text).not.toMatch(/:150(?:0\d|2\d)\b/)
  })

  it('serves each model at its vendor, with the key of the vendor, and masks texts', async () => {
    const answer = await openai(key).create({ model: 'gpt-5.1', messages })
    expect(answer.choices[0]?.message.content).toBe('Hello from A')
    expect(a.calls.at(-1)?.headers.authorization).toBe('Bearer key-of-a')
    expect(a.calls.at(-1)?.text).toContain('I am <EMAIL_ADDRESS>')
    const anthropic = new Anthropic({ baseURL, apiKey: key, maxRetries: 0 })
    const request = { model: 'claude-opus-4-8', max_tokens: 99, messages }
    const message = await anthropic.messages.stream(request).finalMessage()
    expect(message.content).toEqual([{ type: 'text', text: 'Hello from C' }])
    expect(c.calls.at(-1)?.headers['x-api-key']).toBe('key-of-c')
    expect(c.calls.at(-1)?.text).toContain('I am <EMAIL_ADDRESS>')
  })

  it('serves models of sound, pictures, moderation and vectors at the vendor that the catalog names', async () => {
    const client = new OpenAI({ baseURL: `${baseURL}/v1`, apiKey: key, maxRetries: 0 })
    const reply = (body: object) => a.next.push((_, response) => json(response, 200, body))
    const seen = a.calls.length
    reply({ text: 'spoken' })
    const file = new File(['sound'], 'sound.wav')
    await client.audio.transcriptions.create({ model: 'whisper-1', file })
    a.next.push((_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' })
      response.end('sound')
    })
    await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Hello' })
    for (const model of ['gpt-image-1', 'dall-e-3']) {
      reply({ created: 1, data: [] })
      await client.images.generate({ model, prompt: 'A cat' })
    }
    reply({ id: 'm', model: 'omni-moderation-latest', results: [] })
    await client.moderations.create({ model: 'omni-moderation-latest', input: 'Hello' })
    await client.embeddings.create({ model: 'text-embedding-3-small', input: 'Hello' })
    const calls = a.calls.slice(seen)
    expect(calls.map(({ path }) => path)).toEqual([
      '/v1/audio/transcriptions',
      '/v1/audio/speech',
      '/v1/images/generations',
      '/v1/images/generations',
      '/v1/moderations',
      '/v1/embeddings',
    ])
    for (const { headers } of calls) expect(headers.authorization).toBe('Bearer key-of-a')
  })

  it('translates to the vendor of the model', async () => {
    const answer = await openai(key).create({ model: 'claude-opus-4-8', messages })
    expect(answer.choices[0]?.message.content).toBe('Hello from C')
  })

  it('lists the models to clients with the key only', async () => {
    const list = (headers: Record<string, string>) => fetch(`${baseURL}/v1/models`, { headers })
    const response = await list({ authorization: `Bearer ${key}` })
    const { data } = (await response.json()) as { data: { id: string; owned_by: string }[] }
    for (const [id, owner] of [
      ['gemini-3.5-flash', 'gcp.gemini'],
      ['mistral-large-latest', 'mistral_ai'],
      ['deepseek-v4-pro', 'deepseek'],
    ] as const) {
      expect(data).toContainEqual(expect.objectContaining({ id, owned_by: owner }))
    }
    // Servers at other addresses than those of the vendors may have any models.
    expect(data.filter(({ owned_by }) => ['openai', 'anthropic'].includes(owned_by))).toEqual([])
    expect((await list({})).status).toBe(401)
    await expect(openai('wrong').create({ model: 'gpt-5.1', messages })).rejects.toThrow('401')
  })

  it('stores no key, and listens on this machine only', () => {
    const folder = join(state, 'sluice', `ai-${port}`)
    const text = readFileSync(join(folder, 'manifests.yaml'), 'utf8')
    for (const secret of [key, 'key-of-a', 'key-of-c']) expect(text).not.toContain(secret)
    expect(readFileSync(output, 'utf8')).not.toMatch(/key-of-[ac]/)
  })
})

describe('a budget of sluice ai', () => {
  it('refuses requests when it is spent', async () => {
    const ask = () => openai(key).create({ model: 'gpt-5.1', messages })
    const answers = []
    for (let n = 0; n < 21; n++) answers.push(await ask().catch(({ status }) => status))
    expect(answers[0]).toMatchObject({ model: 'gpt-5.1' })
    expect(answers.at(-1)).toBe(429)
  })

  it.each([
    ['5USD/day', 'USD', '"5"', 'Day'],
    ['$2.50/Month', 'USD', '"2.50"', 'Month'],
    ['200000 tokens/hour', 'Tokens', '"200000"', 'Hour'],
  ])('is an amount for a window: %s', async (text, unit, amount, window) => {
    const { stdout } = await sluice('ai', '--ollama', '--print', '--budget', text)
    expect(stdout).toContain(`unit: ${unit}\n    amount: ${amount}\n  window:\n    unit: ${window}`)
  })
})

describe('the options of sluice ai', () => {
  it.each([
    [[], 'no vendor is chosen'],
    [
      ['--openai-key-env', 'SLUICE_TEST_NOTHING'],
      'SLUICE_TEST_NOTHING: this environment variable is not set',
    ],
    [['--ollama', '--base-url', 'ollama=127.0.0.1'], 'expected NAME=URL'],
    [
      ['--ollama', '--base-url', 'openai=http://127.0.0.1'],
      '--base-url openai: no such vendor is chosen',
    ],
    [['--ollama', '--groq-key-env', 'PATH'], 'groq and ollama would both serve every model'],
    [['--ollama', '--port', '70000'], 'expected a port'],
    [['--ollama', '--budget', '5EUR/day'], '--budget 5EUR/day: expected an amount in USD'],
    [['--ollama', '--budget', '5USD'], '--budget 5USD: expected an amount in USD'],
    [['--ollama', '--budget', '1.5requests/day'], '--budget 1.5requests/day: expected an amount'],
    [
      ['--ollama', '--client-key-env', 'SLUICE_TEST_NOTHING'],
      'SLUICE_TEST_NOTHING: this environment variable is not set',
    ],
  ])('are refused: %j', async (args, message) => {
    const { code, stderr } = await sluice('ai', ...args)
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  })

  it('print manifests that are valid', async () => {
    const { stdout, stderr, code } = await sluice('ai', '--ollama', '--print', '--no-masks')
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^key of clients: sk-sluice-\S{43}$/m),
    ])
    expect(stdout).toContain('baseURL: http://127.0.0.1:11434')
    expect(stdout).not.toContain('promptGuard')
    expect(stdout).not.toContain('sk-sluice')
  })
})
