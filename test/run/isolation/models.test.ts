import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { passAll, startExtProcServer } from '../../support/ext-proc-server.ts'
import { useFixture, useGateway, useUpstream } from '../../support/fixture.ts'
import { freePort } from '../../support/gateway.ts'
import { keepAliveAgent, send } from '../../support/http-client.ts'
import {
  aiBackend,
  gateway,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../../support/manifests.ts'
import { taggedFields, tagsIn } from '../../support/tagged-upstream.ts'
import type { ReceivedRequest } from '../../support/upstream.ts'

const tagOf = ({ body }: ReceivedRequest): string => tagsIn(body)[0] ?? 'none'

function begin(response: ServerResponse, tag: string, type: string): void {
  for (const [name, value] of Object.entries(taggedFields(tag))) response.setHeader(name, value)
  response.setHeader('content-type', type)
}

/** A vendor of chats that repeats the tag of each request in head and body. */
const vendor = useUpstream('vendor', (received, response) => {
  const tag = tagOf(received)
  const common = { id: tag, created: 1, model: 'm' }
  if (!received.body.includes('"stream":true')) {
    begin(response, tag, 'application/json')
    const message = { role: 'assistant', content: `${tag} ann@example.com` }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    response.end(JSON.stringify({ ...common, object: 'chat.completion', choices }))
    return
  }
  begin(response, tag, 'text/event-stream')
  for (const content of [tag, ' ann@', 'example.com', undefined]) {
    const delta = content === undefined ? {} : { content }
    const choices = [{ index: 0, delta, finish_reason: content === undefined ? 'stop' : null }]
    const event = { ...common, object: 'chat.completion.chunk', choices }
    response.write(`data: ${JSON.stringify(event)}\n\n`)
  }
  response.end('data: [DONE]\n\n')
})

/** An MCP server that repeats the tag of each request; `initialize` begins a session of its own. */
const tools = useUpstream('tools', (received, response) => {
  const message = JSON.parse(received.body || '{}') as { id?: unknown; method?: string }
  if (message.id === undefined) {
    response.writeHead(202).end()
    return
  }
  const tag = tagOf(received)
  begin(response, tag, 'application/json')
  const result =
    message.method === 'initialize'
      ? {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: tag, version: '1' },
        }
      : { content: [{ type: 'text', text: tag }] }
  response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
})
const judge = useUpstream('judge', (_, response) => {
  setTimeout(() => response.end('{"action":{}}'), 2)
})
const processor = useFixture(() => startExtProcServer(passAll))

const webhook = [{ webhook: { backendRef: toBackend('judge') } }]
const masks = [{ regex: { builtins: ['Email'] } }]
const guards: Readonly<Record<string, object | undefined>> = {
  unguarded: undefined,
  masked: { promptGuard: { request: masks, response: masks } },
  judged: { promptGuard: { request: webhook, response: webhook } },
  both: { promptGuard: { request: masks, response: [...masks, ...webhook] } },
}

const port = await freePort()
const running = useGateway(() => ({
  args: ['--workers', '1'],
  manifests: [
    gateway(port),
    staticBackend('judge', judge.port),
    staticBackend('processor', processor.port),
    ...Object.entries(guards).flatMap(([name, ai]) => [
      aiBackend(
        name,
        { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
        ai && { ai },
      ),
      routeByPath(name),
    ]),
    mcpBackend('tools', [{ name: 'one', static: { host: '127.0.0.1', port: tools.port } }]),
    routeByPath('tools'),
    mcpBackend(
      'joined',
      ['one', 'two'].map((name) => ({ name, static: { host: '127.0.0.1', port: tools.port } })),
    ),
    routeByPath('joined'),
    policy('processed', 'HTTPRoute/both', {
      traffic: { extProc: { backendRef: toBackend('processor') } },
    }),
  ],
}))

const agent = keepAliveAgent(64)
let count = 0

/** Sends `total` requests, 24 at a time, and returns a line for each response that is not its own. */
async function runAll(
  total: number,
  ask: (tag: string) => Promise<{ readonly status: number; readonly text: string }>,
): Promise<string[]> {
  const wrong: string[] = []
  let begun = 0
  const worker = async () => {
    while (begun++ < total && wrong.length < 5) {
      const tag = `tag-${++count}-`
      const { status, text } = await ask(tag).catch((error: unknown) => ({
        status: 0,
        text: String(error),
      }))
      const tags = tagsIn(text)
      if (status !== 200 || tags.length !== 1 || tags[0] !== tag) {
        wrong.push(`${tag}: ${status} ${tags.join(' ')} ${text.slice(0, 200)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: 24 }, worker))
  return wrong
}

const accepted = 'application/json, text/event-stream'

async function post(path: string, body: object, accept = '*/*', more: object = {}) {
  const headers = { 'content-type': 'application/json', accept, ...more }
  const {
    status,
    headers: received,
    body: text,
  } = await send(port, {
    method: 'POST',
    path,
    headers,
    body: JSON.stringify(body),
    agent,
  })
  return { status, received, text: `${JSON.stringify(received)}${text}` }
}

const message = (tag: string, method: string, params: object) => ({
  jsonrpc: '2.0',
  id: tag,
  method,
  params: { ...params, _meta: { tag } },
})
const initialize = (tag: string) =>
  message(tag, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: tag, version: '1' },
  })

describe('concurrent clients of models and tools', () => {
  const kinds = Object.keys(guards).flatMap((name) => [
    [name, 'whole', false] as const,
    [name, 'streamed', true] as const,
  ])

  it.each(kinds)(
    'receive only bytes of their own from a model that is %s, %s',
    async (name, _, stream) => {
      const wrong = await runAll(300, (tag) =>
        post(`/${name}/v1/chat/completions`, {
          model: 'm',
          stream,
          messages: [{ role: 'user', content: tag }],
        }),
      )
      expect(wrong).toEqual([])
      expect(running.stderr).not.toContain('bug')
    },
  )

  it('receive only bytes of their own from an MCP server', async () => {
    const wrong = await runAll(300, (tag) => post('/tools', initialize(tag), accepted))
    expect(wrong).toEqual([])
  })

  it('receive only bytes of their own from several MCP servers', async () => {
    const wrong = await runAll(200, async (tag) => {
      const { received } = await post('/joined', initialize(tag), accepted)
      const session = { 'mcp-session-id': String(received['mcp-session-id']) }
      const call = message(tag, 'tools/call', { name: 'two_say', arguments: {} })
      return post('/joined', call, accepted, session)
    })
    expect(wrong).toEqual([])
  })
})
