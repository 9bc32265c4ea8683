/** The work for a message grows with its length: one request or response must not stop a worker for seconds. */
import { describe, expect, it } from 'vitest'
import {
  type ChatFormatName,
  clientFormats,
  type ProviderFormatName,
} from '../../src/engines/messages/formats/index.ts'
import { LlmError, requestTexts, translateRequest } from '../../src/engines/messages/index.ts'
import { HeldStream } from '../../src/engines/messages/mask/held-stream.ts'
import { responseTexts, withRequestTexts } from '../../src/engines/messages/mask/slots.ts'
import { StreamWindows } from '../../src/engines/messages/mask/stream-windows.ts'
import { mapRequestTexts } from '../../src/engines/messages/mask/texts.ts'
import { settleMediaTypes } from '../../src/engines/messages/request/media-types.ts'
import { SseReader } from '../../src/engines/sse/reader.ts'
import { readRequest } from '../../src/gateway/backends/mcp/message.ts'
import { repeatedArguments } from '../../src/gateway/backends/mcp/proxy/calls/repeated-arguments.ts'
import { FieldPairs } from '../../src/ground/exchange/memory-message.ts'
import { providers } from './guarded-translations.ts'
import { manyOfCompletions } from './many/completions.ts'
import { eventsOfCompletions } from './many/completions-events.ts'
import { eventsOfConverse } from './many/converse-events.ts'
import { eventsOfGenerateContent } from './many/generate-content-events.ts'
import { manyOfMessages } from './many/messages.ts'
import { eventsOfMessages } from './many/messages-events.ts'
import { manyOfResponses } from './many/responses.ts'
import { eventsOfResponses } from './many/responses-events.ts'
import { manyInResponses } from './many/whole-responses.ts'

/** The numbers of items that are compared. */
const few = 500
const factor = 8
/** Quadratic work grows by `factor ** 2`, which is 64; less than this is noise of the compiler and the collector. */
const maxGrowth = 24
/** Milliseconds of processor time that no input of this size needs. */
const harmless = 60

/** Returns milliseconds of processor time of this thread, which other processes do not change. */
function timeOf(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

/** Fails if `prepare(n)` returns work that takes more than proportional time for more items. */
function expectLinear(prepare: (n: number) => () => void): void {
  const [small, large] = [prepare(few), prepare(few * factor)]
  let [less, more] = [timeOf(small), timeOf(large)]
  for (let run = 0; run < 4 && more > Math.max(harmless, less * maxGrowth); run++) {
    less = Math.max(less, timeOf(small))
    more = Math.min(more, timeOf(large))
  }
  expect(more).toBeLessThan(Math.max(harmless, less * maxGrowth))
}

describe('a response that guards check in windows', () => {
  const event = (type: string, output_index: number, fields: object) => {
    const item_id = `item ${output_index}`
    const data = { type, item_id, output_index, content_index: 0, ...fields }
    return { event: type, data: JSON.stringify(data) }
  }
  const letters = 'lorem ipsum '.repeat(90)
  it.each([
    ['is one long text', () => 0],
    ['has many texts', (at: number) => at],
  ])('%s, and takes linear time', (_, itemOf) => {
    expectLinear((n) => () => {
      const windows = new StreamWindows(clientFormats.Responses, 1 << 30)
      let released = 0
      for (let at = 0; at < n; at++) {
        const item = itemOf(at)
        const delta = `${letters} ${at}`
        windows.add(event('response.output_text.delta', item, { delta }))
        if (item !== itemOf(at + 1)) {
          const content = [{ type: 'output_text', text: delta, annotations: [] }]
          windows.add(
            event('response.output_item.done', item, { item: { type: 'message', content } }),
          )
        }
        if (windows.isDue) released += windows.close(windows.open(), false).length
      }
      expect(released).toBeGreaterThan(n / 2)
    })
  })
})

const clients = ['Completions', 'Messages', 'Responses'] as const

describe('a request with many calls and results', () => {
  const times = (n: number, make: (at: number) => object) =>
    Array.from({ length: n }, (_, at) => make(at))
  it('is read in linear time in the formats of Gemini and Bedrock', () => {
    expectLinear((n) => {
      const call = (at: number) => ({ functionCall: { name: `f${at % 3}`, args: {} } })
      const result = (at: number) => ({
        functionResponse: { name: `f${(n - at) % 3}`, response: {} },
      })
      const contents = [
        { role: 'model', parts: times(n, call) },
        { role: 'user', parts: times(n, result) },
      ]
      return () => void translateRequest({ model: 'm', contents }, 'GenerateContent', 'completions')
    })
    expectLinear((n) => {
      const call = (at: number) => ({ toolUse: { toolUseId: `a${at}`, name: 'f', input: {} } })
      const result = (at: number) => ({ toolResult: { toolUseId: `a${at}`, content: [] } })
      const messages = [
        { role: 'assistant', content: times(n, call) },
        { role: 'user', content: times(n, result) },
      ]
      return () => void translateRequest({ model: 'm', messages }, 'Converse', 'completions')
    })
  })
})

it('arguments of a tool are compared with the headers that repeat them in linear time', () => {
  const headers = new FieldPairs([['mcp-param-word', 'old']])
  const call = (args: object) => {
    const params = { name: 't', arguments: args }
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    const request = readRequest(text)
    if (request === undefined) throw new Error('no request')
    return request
  }
  expectLinear((n) => {
    const many = Array.from({ length: n * 8 }, (_, at) => at)
    const [before, after] = [call({ many, word: 'old' }), call({ many, word: 'new' })]
    return () => void repeatedArguments(headers, before, after)
  })
})

const settings = { model: 'claude-opus-4-7', max_tokens: 9 }

const manyRequests = {
  Completions: manyOfCompletions,
  Messages: manyOfMessages,
  Responses: manyOfResponses,
}

/** Returns whether a format can express a request. */
function isTranslated(body: object, client: ChatFormatName, provider: ProviderFormatName): boolean {
  try {
    translateRequest({ ...settings, ...body }, client, provider)
    return true
  } catch (error) {
    if (error instanceof LlmError) return false
    throw error
  }
}

describe.each(clients)('a request in the format %s', (client) => {
  it.each(Object.entries(manyRequests[client]))('with many %s', (_name, build) => {
    const possible = providers.filter((provider) => isTranslated(build(3), client, provider))
    expect(possible).not.toEqual([])
    for (const provider of possible) {
      expectLinear((n) => {
        const body = { ...settings, ...build(n) }
        return () => void translateRequest(body, client, provider)
      })
    }
    expectLinear((n) => {
      const body = { ...settings, ...build(n) }
      const format = clientFormats[client]
      return () => {
        settleMediaTypes(format.history.settle(body))
        mapRequestTexts(body, (texts) => texts.map((text) => `${text}.`))
        const texts = requestTexts(body).map(({ role }) => ({ role, content: 'y' }))
        withRequestTexts(body, format, texts)
      }
    })
  })
})

const asking = { Completions: 'messages', Messages: 'messages', Responses: 'input' }

const asks = (client: (typeof clients)[number], provider: ProviderFormatName, stream: boolean) =>
  translateRequest(
    { ...settings, stream, [asking[client]]: [{ role: 'user', content: 'a' }] },
    client,
    provider,
  )

const manyEvents = {
  completions: eventsOfCompletions,
  messages: eventsOfMessages,
  responses: eventsOfResponses,
  converse: eventsOfConverse,
  'generate-content': eventsOfGenerateContent,
}

/** Returns what the client gets. Bytes come in pieces, as from a connection. */
function streamed(
  client: (typeof clients)[number],
  provider: ProviderFormatName,
  bytes: Buffer,
): Buffer {
  const stream = asks(client, provider, true).stream()
  const written: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += 65_536) {
    written.push(stream.push(bytes.subarray(at, at + 65_536)))
  }
  written.push(stream.end())
  return Buffer.concat(written)
}

/** Guards a stream that they hold until its end. */
function guard(client: ChatFormatName, bytes: Buffer): void {
  const events: { event: string | undefined; data: string }[] = []
  new SseReader(bytes.length, 'fail').push(bytes, ({ type, data }) =>
    events.push({ event: type, data: data ?? '' }),
  )
  const held = new HeldStream(clientFormats[client], events)
  held.replace(held.texts().map(({ role }) => ({ role, content: 'y' })))
  held.release()
}

describe.each(providers)('a stream in the format %s', (provider) => {
  it.each(Object.entries<(n: number) => string | Uint8Array>(manyEvents[provider]))(
    'with many %s',
    (_name, build) => {
      for (const client of clients) {
        expectLinear((n) => {
          const bytes = Buffer.from(build(n) as string)
          return () => void streamed(client, provider, bytes)
        })
        expectLinear((n) => {
          const bytes = streamed(client, provider, Buffer.from(build(n) as string))
          return () => guard(client, bytes)
        })
      }
    },
  )
})

describe.each(providers)('a whole response in the format %s', (provider) => {
  it.each(Object.entries(manyInResponses[provider]))('with many %s', (_name, build) => {
    for (const client of clients) {
      expectLinear((n) => {
        const text = JSON.stringify(build(n))
        const request = asks(client, provider, false)
        return () => void responseTexts(request.response(text), clientFormats[client])
      })
    }
  })
})
