/** Guarded streams whose events no strict reader takes: clients get what a JSON parser reads, masked. */
import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath } from '../support/manifests.ts'

/** The answer of the vendor, in the pieces in which it is sent. */
let pieces: readonly Buffer[] = []
const vendor = useListening(
  createServer((request, response) => {
    request.resume().on('end', async () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const piece of pieces)
        await new Promise<void>((sent) => response.write(piece, () => sent()))
      response.end()
    })
  }),
)

const port = await freePort()
useGateway(() => ({
  manifests: [
    gateway(port),
    aiBackend(
      'guarded',
      { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
      { ai: { promptGuard: { response: [{ regex: { matches: ['secret-[0-9]+'] } }] } } },
    ),
    routeByPath('guarded'),
  ],
}))

const data = (text: string): string => `data: ${text}\n\n`
const chunk = (delta: string, more = ''): string =>
  data(`{"id":"c", "choices":[{"index":0,"delta":${delta},"finish_reason":null}]${more}}`)
const plain = chunk('{"content":"ab "}')
const end = `${data('{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')}${data('[DONE]')}`

const cut = (all: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
    all.subarray(at * size, (at + 1) * size),
  )

/** Returns the text that a client reads. */
async function read(events: readonly (string | Buffer)[], size: number): Promise<string> {
  const alone = [...events, end].map((event) => Buffer.from(event))
  pieces = size === 0 ? alone : cut(Buffer.concat(alone), size)
  const response = await fetch(`http://127.0.0.1:${port}/guarded/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'x' }] }),
  })
  const text = await response.text()
  expect(text).not.toContain('secret-1')
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'))
  const bodies = lines.map((line) => JSON.parse(line.slice(6)))
  expect(bodies.some(({ error }) => error !== undefined)).toBe(false)
  expect(text.endsWith(data('[DONE]'))).toBe(true)
  return bodies.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
}

/** 0: each event arrives alone. */
const sizes = [0, 7, 64, 100_000]

it.each(sizes)(
  'the last of two equal fields counts in a guarded event (pieces of %i)',
  async (size) => {
    const twice = chunk('{"content":"secret-1","content":"secret-2 "}')
    expect(await read([plain, plain, twice, plain], size)).toBe('ab ab <masked> ab ')
    expect(await read([twice, twice, twice, plain], size)).toBe('<masked> <masked> <masked> ab ')
    const known = chunk(
      '{"content":"ab "}',
      ',"choices":[{"index":0,"delta":{"content":"secret-2 "}}]',
    )
    expect(await read([known, known, known, plain], size)).toBe('<masked> <masked> <masked> ab ')
  },
)

it.each(sizes)(
  'bytes that are not UTF-8 become U+FFFD in a guarded event (pieces of %i)',
  async (size) => {
    const broken = Buffer.from(
      chunk('{"content":"é secret-1 ~ "}').replace('~', '\u00ff'),
      'latin1',
    )
    const whole = chunk('{"content":"é secret-1 "}')
    expect(await read([plain, whole, whole, plain], size)).toBe('ab é <masked> é <masked> ab ')
    expect(await read([plain, plain, broken, plain], size)).toBe('ab ab \ufffd <masked> \ufffd ab ')
  },
)

it.each(sizes)(
  'a match is masked over events that differ only in their text (pieces of %i)',
  async (size) => {
    const padded = (text: string, pad: string) =>
      chunk(`{"content":"${text}"}`, `,"obfuscation":"${pad}"`)
    const events = ['a sec', 'ret', '-', '1', '2', ' b', ' c'].map((text, at) =>
      padded(text, 'x'.repeat(at)),
    )
    expect(await read(events, size)).toBe('a <masked> b c')
  },
)

it('comments and ids between guarded events do not change them', async () => {
  const events = [plain, ': secret-1\n\n', plain, 'id: secret-1\n\n', `id: 4\n${plain}`, plain]
  for (const size of sizes) expect(await read(events, size)).toBe('ab ab ab ab ')
})
