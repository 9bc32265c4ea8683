/** The gateway and the peer of the benches of language models, on one upstream. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  staticBackend,
  toBackend,
} from '../../test/support/manifests.ts'
import { launcher } from '../harness.ts'
import type { Scenario } from '../proxy/load.ts'
import { installPackages } from '../proxy/peers.ts'
import { type MeasuredProxy, startProxyProcess } from '../proxy/process.ts'
/** Where each thing that is measured is served. */
export const paths = {
  plain: '/plain/v1/chat/completions',
  ai: '/ai/v1/chat/completions',
  guarded: '/guarded/v1/chat/completions',
  cached: '/cached/v1/chat/completions',
  count: '/ai/v1/messages/count_tokens',
  generate: '/gemini/v1beta/models/gemini-2.5-flash:generateContent',
  converse: '/bedrock/model/amazon.nova-lite-v1%3A0/converse',
} as const

const builtins = ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin']

/** Ourselves: a plain proxy, a model without guards and one with, all to the same upstream. */
export async function startSluice(
  folder: string,
  upstream: number,
  program = launcher,
): Promise<MeasuredProxy> {
  const port = await freePort()
  const manifests = join(folder, 'manifests')
  mkdirSync(manifests)
  const to = (name: string) => ({
    matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
    backendRefs: [toBackend(name)],
  })
  const place = { host: '127.0.0.1', port: upstream }
  const provider = { vendorA: {}, ...place }
  const routes = { '/count_tokens': 'VendorCTokenCount', '*': 'Completions' }
  const all = manifest(
    gateway(port),
    staticBackend('plain', upstream),
    aiBackend('ai', { provider }, { ai: { routes } }),
    aiBackend(
      'guarded',
      { provider },
      { ai: { promptGuard: { response: [{ regex: { builtins } }] } } },
    ),
    aiBackend('cached', { provider }, { ai: { cache: { ttl: '24h', scope: 'Shared' } } }),
    aiBackend('gemini', { provider: { ...place, vendorD: {} } }, { auth: { key: 'AIzaBench' } }),
    aiBackend('bedrock', { provider: { ...place, vendorF: {} } }, { auth: { key: 'bench' } }),
    httpRoute('all', { rules: ['plain', 'ai', 'guarded', 'cached', 'gemini', 'bedrock'].map(to) }),
  )
  writeFileSync(join(manifests, 'all.yaml'), all)
  const off = ['--admin-address', 'off', '--stats-address', '127.0.0.1:0']
  const more = ['--readiness-address', '127.0.0.1:0', '--bind-address', '127.0.0.1']
  const run = [program, 'run', '-f', manifests, '--ephemeral', '--workers', '1']
  return startProxyProcess({
    name: 'sluice',
    version: '',
    port,
    command: [...run, ...off, ...more],
  })
}

const portkey = { '@portkey-ai/gateway': '1.15.2' }

/** The peer, installed by npm into the user's cache. Rejects if the registry cannot be reached. */
export async function startPortkey(): Promise<MeasuredProxy> {
  const folder = await installPackages(portkey)
  const port = await freePort()
  const start = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js')
  const command = [process.execPath, start, `--port=${port}`, '--headless']
  const [version = ''] = Object.values(portkey)
  return startProxyProcess({ name: 'portkey', version, port, command })
}

const words = 'Tell me how a gateway decides where a request goes, and why it may refuse one. '

/** A prompt of about so many bytes. */
const prompt = (bytes: number): string =>
  words.repeat(Math.ceil(bytes / words.length)).slice(0, bytes)

export interface ChatOptions {
  readonly bytes?: number
  readonly stream?: boolean
  readonly headers?: readonly string[]
}

/** One request for a chat completion, as bytes. */
export function chat(path: string, options: ChatOptions = {}): Scenario {
  const { bytes = 1024, stream = false } = options
  const messages = [{ role: 'user', content: prompt(bytes) }]
  const more = stream ? { stream, stream_options: { include_usage: true } } : {}
  return post(path, JSON.stringify({ model: 'gpt-4o-mini', messages, ...more }), options)
}

/** One request with the same prompt in Gemini's format. */
export const generate = (path: string): Scenario =>
  post(path, JSON.stringify({ contents: [{ role: 'user', parts: [{ text: prompt(1024) }] }] }))

/** One request with the same prompt in the format of Converse. */
export const converse = (path: string): Scenario =>
  post(path, JSON.stringify({ messages: [{ role: 'user', content: [{ text: prompt(1024) }] }] }))

/** One plain GET, of which the upstream answers as many bytes as it does a chat completion. */
export function get(path: string): Scenario {
  const head = [`GET ${path} HTTP/1.1`, 'host: bench.example.com', 'accept: */*', '\r\n']
  const request = Buffer.from(head.join('\r\n'), 'latin1')
  return { name: path, request, response: Buffer.alloc(0) }
}

function post(path: string, body: string, options: ChatOptions = {}): Scenario {
  const { stream = false, headers = [] } = options
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: bench.example.com',
    'user-agent: bench/1.0',
    'accept: */*',
    'authorization: Bearer 0123456789abcdef0123456789abcdef',
    'content-type: application/json',
    `content-length: ${body.length}`,
    ...headers,
    '\r\n',
  ]
  const request = Buffer.from(head.join('\r\n') + body, 'latin1')
  return { name: path, request, response: stream ? undefined : Buffer.alloc(0) }
}

/** The configuration that names the peer's vendor. */
export const portkeyHeaders = (upstream: number): string[] => [
  'x-portkey-provider: openai',
  `x-portkey-custom-host: http://127.0.0.1:${upstream}/v1`,
]
