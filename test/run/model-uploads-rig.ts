/** A gateway for requests with files, and what its vendor got. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import OpenAI, { toFile } from 'openai'
import { beforeEach } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { policy, secret } from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { json } from '../support/vendors/vendor.ts'
import { formOf } from '../support/vendors/vendor-a.ts'

export const ssn = '123-45-6789'
const key = { key: 'gateway-key' }
const request = [{ regex: { builtins: ['Ssn'] } }]
const response = [{ regex: { builtins: ['Email'] } }]
const guarded = { promptGuard: { request } }
const kept = { promptGuard: { response } }

/** A server that notes how much of a request has arrived. */
export const slow = useFixture(async () => {
  const seen = { bytes: 0, length: '', port: 0 }
  const server = createServer((incoming, answer) => {
    seen.bytes = 0
    seen.length = incoming.headers['content-length'] ?? ''
    incoming.on('data', (chunk: Buffer) => {
      seen.bytes += chunk.length
    })
    incoming.on('end', () => json(answer, 200, { text: 'whole' }))
    incoming.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  seen.port = (server.address() as AddressInfo).port
  return { seen, dispose: () => server.closeAllConnections() ?? server.close() }
})

export const fleet = useFleet(({ at }) => [
  reached('open', { vendorA: {}, ...at('a') }, { ai: undefined, auth: key }),
  reached('guarded', { vendorA: {}, ...at('a') }, { ai: guarded, auth: key }),
  reached('kept', { vendorA: {}, ...at('a') }, { ai: kept, auth: key }),
  reached(
    'pinned',
    { vendorA: { model: 'gpt-4o-transcribe' }, ...at('a') },
    { auth: key, ai: undefined },
  ),
  reached(
    'set',
    { vendorA: {}, ...at('a') },
    {
      ai: {
        modelAliases: { fast: 'whisper-1' },
        overrides: [{ field: 'language', value: 'de' }],
        defaults: [{ field: 'temperature', value: 0.5 }],
      },
      auth: key,
    },
  ),
  reached(
    'slow',
    { vendorA: {}, host: '127.0.0.1', port: slow.seen.port },
    { ai: guarded, auth: key },
  ),
  reached('c', { vendorC: {}, ...at('c') }, { ai: undefined, auth: key }),
  [
    secret('keys', { one: JSON.stringify({ key: 'k', allowedModels: ['whisper-1'] }) }),
    policy('keys', 'HTTPRoute/limited', {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
    }),
  ],
  reached('limited', { vendorA: {}, ...at('a') }, { ai: undefined, auth: key }),
])
beforeEach(() => fleet.forget())

export const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'k', maxRetries: 0 })

/** Bytes of every value, line ends and what looks like a boundary. */
export const sound = Buffer.concat([
  Buffer.from(Array.from({ length: 256 }, (_, at) => at)),
  Buffer.from(
    '\r\n--\r\n\n--x\r--\r\n\r\nContent-Disposition: form-data; name="model"\r\n\r\nother\r\n',
  ),
  Buffer.alloc(300_000, '\r\n--'),
])
export const file = () => toFile(sound, 'speech.mp3', { type: 'audio/mpeg' })

export async function sent() {
  const call = fleet.lastCall('a')
  if (call === undefined) return undefined
  const form = await formOf(call)
  const fields = [...form.entries()].filter(([, value]) => typeof value === 'string')
  const files = form.getAll('file').concat(form.getAll('image'))
  const contents = await Promise.all(
    files.map(async (one) => Buffer.from(await (one as File).arrayBuffer())),
  )
  return { call, fields, contents }
}

export const transcribed = (body: object) =>
  fleet.vendors.a.next.push((_, answer) => json(answer, 200, body))

export const boundary = 'a.boundary'
export const disposition = (name: string, more = '') =>
  `Content-Disposition: form-data; name="${name}"${more}`
export const part = (name: string, value: string) =>
  `--${boundary}\r\n${disposition(name)}\r\n\r\n${value}\r\n`
export const filePart = `--${boundary}\r\n${disposition('file', '; filename="a.mp3"')}\r\n\r\nsound\r\n`
export const last = `--${boundary}--\r\n`
export const model = part('model', 'whisper-1')
