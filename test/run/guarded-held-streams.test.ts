/**
 * Guarded streams for clients of Gemini and Converse, which are held until their end: no piece of a secret gets
 * through, however the answer is split, and whether it ends, fails or is cut off.
 */
import { createServer } from 'node:http'
import { EventStreamCodec } from '@smithy/core/event-streams'
import { expect, it } from 'vitest'
import { Random } from '../core/texts/messages.ts'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath } from '../support/manifests.ts'
import { frame } from '../support/vendors/vendor-f.ts'

const endings = ['whole', 'error', 'cut', 'torn'] as const
type Ending = (typeof endings)[number]

/** The next answer of the vendor; whether it breaks the connection after it, instead of ending the answer. */
let answer: {
  readonly type: string
  readonly pieces: readonly Buffer[]
  readonly breaks: boolean
}
const vendor = useListening(
  createServer((request, response) => {
    request.resume().on('end', async () => {
      const { type, pieces, breaks } = answer
      response.writeHead(200, { 'content-type': type })
      for (const piece of pieces) {
        await new Promise<void>((sent) => response.write(piece, () => sent()))
      }
      if (breaks) response.destroy()
      else response.end()
    })
  }),
)

const secret = 'ann@example.com'
const port = await freePort()
const providers = {
  gemini: { vendorD: { model: 'm' } },
  converse: { vendorF: { model: 'm' } },
  completions: { custom: { formats: [{ type: 'Completions' }] } },
}
type ProviderName = keyof typeof providers
const names = Object.keys(providers) as ProviderName[]
useGateway(() => ({
  manifests: [
    gateway(port),
    ...names.flatMap((name) => [
      aiBackend(
        name,
        { provider: { ...providers[name], host: '127.0.0.1', port: vendor.port } },
        {
          auth: { key: 'AIzaKey' },
          ai: { promptGuard: { response: [{ regex: { builtins: ['Email'] } }] } },
        },
      ),
      routeByPath(name),
    ]),
  ],
}))

const sse = (event: unknown) => Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
const failed = `The answer ${secret} broke`

/** An answer in one text, and what comes behind it: its end, or an error that quotes the secret. */
interface Vendor {
  readonly type: string
  texts(pieces: readonly string[]): Uint8Array[]
  readonly end: readonly Uint8Array[]
  readonly error: Uint8Array
}

const candidate = (text: string, more: object = {}) =>
  sse({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }] })
const chunk = (delta: object, finish_reason: string | null) =>
  sse({
    ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta, finish_reason }],
  })
const vendors: Readonly<Record<ProviderName, Vendor>> = {
  gemini: {
    type: 'text/event-stream',
    texts: (pieces) => pieces.map((text) => candidate(text)),
    end: [candidate('', { finishReason: 'STOP' })],
    error: sse({ error: { code: 503, message: failed, status: 'UNAVAILABLE' } }),
  },
  converse: {
    type: 'application/vnd.amazon.eventstream',
    texts: (pieces) => [
      frame('messageStart', { role: 'assistant' }),
      ...pieces.map((text) =>
        frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text } }),
      ),
    ],
    end: [
      frame('contentBlockStop', { contentBlockIndex: 0 }),
      frame('messageStop', { stopReason: 'end_turn' }),
      frame('metadata', { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }),
    ],
    error: frame('modelStreamErrorException', { message: failed }, 'exception'),
  },
  completions: {
    type: 'text/event-stream',
    texts: (pieces) => pieces.map((content) => chunk({ content }, null)),
    end: [chunk({}, 'stop'), Buffer.from('data: [DONE]\n\n')],
    error: sse({ error: { message: failed, type: 'server_error' } }),
  },
}

/** What a client reads of a stream. */
interface Read {
  readonly text: string
  readonly hasError: boolean
  readonly hasEnd: boolean
}

type Fields = Readonly<Record<string, unknown>>

function readCandidates(events: readonly Fields[]): Read {
  const all = events.flatMap(({ candidates = [] }) => candidates as Fields[])
  const parts = all.flatMap(({ content }) => ((content as Fields)?.parts ?? []) as Fields[])
  return {
    text: parts.map(({ text = '' }) => text).join(''),
    hasError: events.some(({ error }) => error !== undefined),
    hasEnd: all.some(({ finishReason }) => finishReason !== undefined),
  }
}

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString('utf8'),
  (text) => Buffer.from(text, 'utf8'),
)

function readFrames(bytes: Buffer): Read {
  let text = ''
  const types: unknown[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    const { headers, body } = codec.decode(bytes.subarray(at, at + length))
    const kind = headers[':message-type']?.value
    types.push(kind === 'event' ? headers[':event-type']?.value : kind)
    text += JSON.parse(Buffer.from(body).toString()).delta?.text ?? ''
    at += length
  }
  return { text, hasError: types.includes('exception'), hasEnd: types.includes('messageStop') }
}

const linesOf = (bytes: Buffer): Fields[] =>
  bytes
    .toString()
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)))

const asked = { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }
const clients = {
  'Gemini as events': {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: asked,
    read: (bytes: Buffer) => readCandidates(linesOf(bytes)),
  },
  'Gemini as an array': {
    path: '/v1beta/models/m:streamGenerateContent',
    body: asked,
    read: (bytes: Buffer) => readCandidates(JSON.parse(bytes.toString())),
  },
  Converse: {
    path: '/model/m/converse-stream',
    body: { messages: [{ role: 'user', content: [{ text: 'x' }] }] },
    read: readFrames,
  },
}
type ClientName = keyof typeof clients

function piecesOf(random: Random): string[] {
  const words = [`write to ${secret}`, secret, 'ann@', 'example.com', 'é', '.', '\n']
  const text = Array.from({ length: 1 + random.below(6) }, () => random.of(words)).join(' ')
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(8)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

/** Cuts bytes anywhere, also within an event and a character. */
function cutAnywhere(bytes: Buffer, random: Random): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.below(200)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

function answerOf(
  { type, texts, end, error }: Vendor,
  pieces: readonly string[],
  ending: Ending,
  random: Random,
) {
  const last = { whole: end, error: [error], cut: [], torn: end }[ending]
  const all = Buffer.concat([...texts(pieces), ...last])
  const sent = ending === 'torn' ? all.subarray(0, random.below(all.length)) : all
  return { type, pieces: cutAnywhere(sent, random), breaks: ending === 'cut' }
}

async function ask(name: ProviderName, client: ClientName): Promise<Read & { status: number }> {
  const { path, body, read } = clients[client]
  const response = await fetch(`http://127.0.0.1:${port}/${name}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  expect(bytes.toString('latin1')).not.toContain(secret)
  const { status } = response
  if (status !== 200) return { text: '', hasError: true, hasEnd: false, status }
  return { ...read(bytes), status }
}

const cases = names.flatMap((name) =>
  (Object.keys(clients) as ClientName[]).map((client) => ({ name, client })),
)

it.each(cases)('$client gets nothing unmasked of a stream of $name', async ({ name, client }) => {
  for (let seed = 1; seed <= 12; seed++) {
    for (const ending of endings) {
      const random = new Random(seed * 7919)
      const pieces = piecesOf(random)
      answer = answerOf(vendors[name], pieces, ending, random)
      const { text, hasError, hasEnd, status } = await ask(name, client)
      const where = `seed ${seed}, ${ending}: ${status} ${JSON.stringify([text, pieces])}`
      expect(text, where).not.toContain(secret)
      const masked = pieces.join('').replaceAll(secret, '<EMAIL_ADDRESS>')
      const isWhole = ending === 'whole' || (ending === 'torn' && !hasError)
      if (isWhole) expect([text, hasError, hasEnd], where).toEqual([masked, false, true])
      else expect(hasError, where).toBe(true)
    }
  }
})
