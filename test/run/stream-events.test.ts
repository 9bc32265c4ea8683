/** Streams of server-sent events of any size, from models through the gateway to clients. */
import { createServer, type ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const MiB = 1024 * 1024
const completions = '/v1/chat/completions'
const messages = '/v1/messages'

let serve: (response: ServerResponse) => void = () => {}
let closed = 0
const vendor = useListening(
  createServer((request, response) => {
    response.on('close', () => closed++)
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      serve(response)
    })
  }),
)

const routes = { [completions]: 'Completions', [messages]: 'Messages' }
const guard = { promptGuard: { response: [{ regex: { matches: ['secret-[0-9]+'] } }] } }

const port = await freePort()
const running = useGateway(() => {
  const backend = (name: string, settings: object) => [
    aiBackend(
      name,
      { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
      { ai: { routes, ...settings } },
    ),
    routeByPath(name),
  ]
  return {
    manifests: [gateway(port), ...backend('plain', {}), ...backend('guarded', guard)],
  }
})

const chunkOf = (content: string, more: object = {}) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
  ...more,
})
const last = { ...chunkOf(''), choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
const eventOf = (value: object | string) =>
  `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`

/** The answer of the vendor; `end` is what it does after its bytes. */
function says(parts: readonly (string | Uint8Array)[], end: 'end' | 'cut' | 'stay' = 'end'): void {
  serve = async (response) => {
    for (const part of parts) await new Promise<void>((sent) => response.write(part, () => sent()))
    if (end === 'end') response.end()
    else if (end === 'cut') response.destroy()
  }
}

const ask = (name: string, path: string, more: object = {}) =>
  fetch(`http://127.0.0.1:${port}/${name}${path}`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'm',
      max_tokens: 9,
      stream: true,
      messages: [{ role: 'user', content: 'x' }],
      ...more,
    }),
  })

/** Data of the events of an answer, as a client reads them: split at empty lines. */
const dataOf = (text: string): string[] =>
  text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) =>
      block
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(line[5] === ' ' ? 6 : 5))
        .join('\n'),
    )

const contentOf = (data: readonly string[]): string =>
  data
    .filter((one) => one !== '[DONE]')
    .map((one) => JSON.parse(one))
    .map((event) => event.choices?.[0]?.delta?.content ?? event.delta?.text ?? '')
    .join('')

const asked = [
  ['unchanged', { stream_options: { include_usage: true } }],
  ['without the usage that the client did not request', {}],
] as const

describe('an event that no policy has to read', () => {
  it.each(asked)('passes %s, whatever its size', async (_how, more) => {
    for (const size of [3, 40]) {
      const large = 'a'.repeat(size * MiB)
      says([
        eventOf(chunkOf('first ')),
        eventOf(chunkOf(large)),
        eventOf(last),
        eventOf({ ...chunkOf(''), choices: [], usage }),
        eventOf('[DONE]'),
      ])
      const data = dataOf(await (await ask('plain', completions, more)).text())
      expect(data.at(-1)).toBe('[DONE]')
      expect(contentOf(data) === `first ${large}`).toBe(true)
      expect(data.some((one) => one.includes('prompt_tokens'))).toBe('stream_options' in more)
    }
    const line = () => running.stdout.split('\n').findLast((one) => one.includes(completions))
    await waitFor('the access log', () => line()?.includes('gen_ai.usage.output_tokens=4') === true)
  })

  it('reaches the client before it is complete', async () => {
    const half = `data: ${JSON.stringify(chunkOf('b'.repeat(MiB))).slice(0, -4)}`
    says([half], 'stay')
    const answer = await ask('plain', completions)
    const reader = answer.body?.getReader()
    let seen = 0
    while (seen < half.length) seen += (await reader?.read())?.value?.length ?? 0
    expect(seen).toBe(half.length)
    await reader?.cancel()
  })

  it('keeps its line ends, types, ids and comments', async () => {
    const bytes = [
      ': hello\r\n',
      `id: 7\r\nevent: x\r\n${eventOf(chunkOf('a')).replaceAll('\n', '\r\n')}`,
      `retry: 5\r\rdata: ${JSON.stringify(last)}\r\r`,
      'data: [DONE]\n\n: bye\n',
    ]
    says(bytes)
    const more = { stream_options: { include_usage: true } }
    expect(await (await ask('plain', completions, more)).text()).toBe(bytes.join(''))
  })
})

describe('an event that the gateway removes', () => {
  it('is removed with its whole last line end, however the bytes are split', async () => {
    const inCrLf = (value: object | string) => eventOf(value).replaceAll('\n', '\r\n')
    const before = inCrLf(chunkOf('a'))
    const out = inCrLf({ ...chunkOf(''), choices: [], usage })
    const behind = inCrLf('[DONE]')
    const all = before + out + behind
    const cuts = [1, 2, 3, 4].map((bytes) => before.length + out.length - bytes)
    for (const cut of [0, ...cuts, before.length + out.length]) {
      says([all.slice(0, cut), all.slice(cut)].filter((part) => part !== ''))
      expect(await (await ask('plain', completions)).text()).toBe(before + behind)
    }
  })
})

describe('an event that has to be read', () => {
  const names = [
    ['translated', 'plain', messages],
    ['guarded', 'guarded', completions],
  ] as const

  it.each(names)('has the size limit of a whole answer if it is %s', async (_how, name, path) => {
    const large = 'a b '.repeat((5 * MiB) / 4)
    says([eventOf(chunkOf(`${large}secret-1`)), eventOf(last), eventOf('[DONE]')])
    const text = await (await ask(name, path)).text()
    const content = contentOf(dataOf(text))
    expect(content.length).toBeGreaterThan(large.length)
    expect(content.startsWith(large)).toBe(true)
    expect(text).not.toContain('too large')
  })

  it.each(names)(
    'ends the stream with an error event above the limit if it is %s',
    async (...args) => {
      const [, name, path] = args
      const floods = [`data: ${'x'.repeat(33 * MiB)}`, 'data:\n'.repeat(6 * MiB)]
      for (const flood of floods) {
        closed = 0
        says([eventOf(chunkOf('Hel')), flood], 'stay')
        const data = dataOf(await (await ask(name, path)).text())
        expect(contentOf(data.slice(0, -1))).toBe('Hel')
        const error = JSON.parse(data.at(-1) ?? '')
        expect(error.error.message).toMatch(/too large/)
        await waitFor('the vendor to be left', () => closed > 0)
      }
    },
  )
})

describe('an answer that is cut off within an event', () => {
  it.each(asked)('ends with an error event, %s', async (_how, more) => {
    for (const half of ['data: {"id":"c","choi', 'event: conte', 'data: {}\nda', 'data']) {
      says([eventOf(chunkOf('Hel')), half], 'cut')
      const data = dataOf(await (await ask('plain', completions, more)).text())
      expect(contentOf(data.slice(0, -1))).toBe('Hel')
      expect(JSON.parse(data.at(-1) ?? '').error.message).toMatch(/cut off/)
    }
  })

  it('ends with an error event after an empty line if the client has a part of the event', async () => {
    says([eventOf(chunkOf('Hel')), `data: ${'x'.repeat(3 * MiB)}`], 'cut')
    const data = dataOf(await (await ask('plain', completions)).text())
    expect(JSON.parse(data.at(-1) ?? '').error.message).toMatch(/cut off/)
    expect(data.at(-2)).toMatch(/^x+$/)
  })

  it('is complete if only the final empty line is missing', async () => {
    for (const [end, [, more]] of ['', '\n'].flatMap((end) =>
      asked.map((one) => [end, one] as const),
    )) {
      says([eventOf(chunkOf('Hel')), eventOf(last), `data: [DONE]${end}`])
      const text = await (await ask('plain', completions, more)).text()
      expect(text).not.toContain('error')
      expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    }
  })
})
