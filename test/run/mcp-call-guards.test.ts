/** Guards of models on the arguments and results of tools, for clients and servers of both eras. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  type Manifest,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectClient, rawSession } from '../support/mcp-client.ts'
import { modernRequest, openModern, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { OrderedEventStore, useMcpServer } from '../support/mcp-server.ts'
import { startUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const ssn = '123-45-6789'
const received: unknown[] = []

function offer(server: McpServer): void {
  const shape = { text: z.string().optional(), deep: z.any().optional() }
  server.registerTool('echo', { inputSchema: shape }, (args) => {
    received.push(args)
    return { content: [{ type: 'text', text: JSON.stringify(args) }] }
  })
  server.registerTool('leak', {}, async (extra) => {
    const progressToken = extra._meta?.progressToken
    if (progressToken !== undefined) {
      const params = { progressToken, progress: 1, message: `at ${ssn}` }
      await extra.sendNotification({ method: 'notifications/progress', params })
    }
    const logged = { level: 'error' as const, data: { deep: [`log ${ssn}`] } }
    await extra.sendNotification({ method: 'notifications/message', params: logged })
    const text = { level: 'error' as const, data: `text ${ssn}` }
    await extra.sendNotification({ method: 'notifications/message', params: text })
    return {
      content: [
        { type: 'text', text: 'split 123-45' },
        { type: 'text', text: '-6789 end' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'resource', resource: { uri: 'test://r', text: `in ${ssn}` } },
      ],
      structuredContent: {
        list: [{ [ssn]: [1.5, ssn, 1e2] }],
        big: 12345678901234567890n.toString(),
      },
    }
  })
  server.registerTool('secret', {}, () => ({
    content: [{ type: 'text', text: 'the code is TOPSECRET' }],
  }))
  server.registerResource('r', 'test://r', {}, (uri) => ({
    contents: [{ uri: uri.href, text: `read ${ssn}` }],
  }))
}

const legacy = useMcpServer({ offer, eventStore: () => new OrderedEventStore() })
const plain = useMcpServer({ offer, isStateless: true, json: true })
const modern = useModernServer({
  answers: {
    'completion/complete': ({ params }) => {
      received.push(params)
      return { completion: { values: [] } }
    },
    'tools/call': ({ id, params }, { send }) => {
      const token = (params._meta as { progressToken?: unknown } | undefined)?.progressToken
      if (params.name !== 'leak') {
        received.push(params.arguments)
        return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] }
      }
      const progress = { progressToken: token, progress: 1, message: `at ${ssn}` }
      send({ jsonrpc: '2.0', method: 'notifications/progress', params: progress })
      send({
        jsonrpc: '2.0',
        id,
        result: { resultType: 'complete', content: [{ type: 'text', text: `is ${ssn}` }] },
      })
      return undefined
    },
  },
})
const hook = useFixture(() =>
  startUpstream('hook', ({ body: sent }, response) => {
    const { body } = JSON.parse(sent) as { body: Asked }
    const messages = body.messages ?? body.choices?.map(({ message }) => message) ?? []
    const text = messages.map(({ content }) => content).join('\n')
    const action = text.includes('attack') ? { status_code: 403, body: 'No attacks' } : {}
    response.end(text.includes('broken') ? 'no' : JSON.stringify({ action }))
  }),
)
interface Asked {
  readonly messages?: readonly { readonly content: string }[]
  readonly choices?: readonly { readonly message: { readonly content: string } }[]
}

const folder = useFolder('sluice-mcp-guards-')
const port = await freePort()
const guards = {
  request: [
    { regex: { builtins: ['Email'] } },
    {
      regex: { matches: ['forbidden'], action: 'Reject' },
      response: { message: 'Not this word' },
    },
  ],
  response: [
    { regex: { builtins: ['Ssn'] } },
    { regex: { matches: ['TOPSECRET'], action: 'Reject' }, response: { message: 'Not for you' } },
  ],
}
const running = useGateway(() => {
  const target = (name: string, server: { readonly port: number }) => ({
    name,
    static: { host: '127.0.0.1', port: server.port },
  })
  const served = (
    name: string,
    targets: readonly Manifest[],
    promptGuard: object = guards,
    more: object = {},
  ) => [
    mcpBackend(name, targets),
    routeByPath(name),
    policy(name, `GatewayBackend/${name}`, { backend: { mcp: { promptGuard, ...more } } }),
  ]
  const calls = { recordArguments: true }
  return {
    manifests: [
      gateway(port),
      staticBackend('hook', hook.port),
      ...served('legacy', [target('only', legacy)], guards, { calls }),
      ...served('modern', [target('only', modern)]),
      ...served('both', [target('a', plain), target('b', modern)]),
      ...served('hooked', [target('only', plain)], {
        request: [{ webhook: { backendRef: toBackend('hook') } }],
        response: [{ webhook: { backendRef: toBackend('hook') } }],
      }),
      ...served('unmasked', [target('only', legacy)], { response: guards.response }, { calls }),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

const at = (path: string) => `http://127.0.0.1:${port}/${path}`
const call = (name: string, args: object = {}, progressToken?: string) =>
  modernRequest(
    'tools/call',
    { name, arguments: args },
    progressToken === undefined ? {} : { meta: { progressToken } },
  )
const textOf = (result: unknown) =>
  (result as { content: { text?: string }[] }).content.map(({ text }) => text).join('')

describe('guards of legacy clients', () => {
  const client = useFixture(() => connectClient(port, '/legacy'))
  const both = useFixture(() => connectClient(port, '/both'))

  it('mask arguments at any depth, also numbers and keys, before the server gets them', async () => {
    const deep = { list: [{ 'ada@example.com': 'x eve@example.com' }], exact: 1.5, no: null }
    const result = await client.callTool({ name: 'echo', arguments: { text: 'ok', deep } })
    expect(received.at(-1)).toEqual({
      text: 'ok',
      deep: { list: [{ '<EMAIL_ADDRESS>': 'x <EMAIL_ADDRESS>' }], exact: 1.5, no: null },
    })
    expect(textOf(result)).toContain('<EMAIL_ADDRESS>')
  })

  it('refuse arguments with a result that the model can read, and the server gets nothing', async () => {
    const before = received.length
    for (const [one, name] of [
      [client, 'echo'],
      [both, 'a_echo'],
    ] as readonly [Client, string][]) {
      const result = await one.callTool({ name, arguments: { deep: { a: ['is forbidden'] } } })
      expect(result).toEqual({ content: [{ type: 'text', text: 'Not this word' }], isError: true })
    }
    expect(received.length).toBe(before)
  })

  it('mask results, whatever holds the text and however it is split, and what precedes them', async () => {
    const logs: unknown[] = []
    const steps: unknown[] = []
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      logs.push(params.data)
    })
    const onprogress = ({ message }: { message?: string | undefined }) => steps.push(message)
    const result = await client.callTool({ name: 'leak' }, undefined, { onprogress })
    expect(result.content).toEqual([
      { type: 'text', text: 'split <SSN>' },
      { type: 'text', text: ' end' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'test://r', text: 'in <SSN>' } },
    ])
    expect(result.structuredContent).toMatchObject({ list: [{ '<SSN>': [1.5, '<SSN>', 100] }] })
    expect([steps, logs]).toEqual([['at <SSN>'], [{ deep: ['log <SSN>'] }, 'text <SSN>']])
  })

  it('mask resources, and refuse results', async () => {
    const { contents } = await client.readResource({ uri: 'test://r' })
    expect(contents).toMatchObject([{ text: 'read <SSN>' }])
    const result = await both.callTool({ name: 'a_secret' })
    expect(result).toMatchObject({ isError: true, content: [{ text: 'Not for you' }] })
  })

  it('give events no ids, and guard a stream that is resumed nevertheless', async () => {
    const session = await rawSession(port, '/legacy')
    const request = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'leak' } }
    const response = await fetch(at('legacy'), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': session.id,
      },
      body: JSON.stringify(request),
    })
    const text = await response.text()
    expect(text).toContain('<SSN>')
    expect(text).not.toMatch(/^id: /m)
    // The ids of this server can be guessed.
    const resumed = await fetch(at('legacy'), {
      headers: {
        accept: 'text/event-stream',
        'mcp-session-id': session.id,
        'last-event-id': 'event-2',
      },
    })
    const reader = resumed.body?.getReader()
    let shown = ''
    while (reader !== undefined && !shown.includes('"id":7')) {
      const { value, done } = await reader.read()
      if (done) break
      shown += Buffer.from(value).toString()
    }
    await reader?.cancel()
    expect(shown).toContain('cannot be resumed')
    expect(shown).not.toContain(ssn)
  })
})

describe('guards of modern clients', () => {
  it('mask arguments and results, whole and streamed, from servers of both eras', async () => {
    const { message } = await sendModern(at('modern'), call('echo', { to: 'ada@example.com' }))
    expect(received.at(-1)).toEqual({ to: '<EMAIL_ADDRESS>' })
    expect(message).toMatchObject({ result: { resultType: 'complete' } })
    for (const path of ['modern', 'both']) {
      const name = path === 'both' ? 'b_leak' : 'leak'
      const { messages } = await sendModern(at(path), call(name, {}, 'p'))
      expect(messages).toMatchObject([
        { params: { progressToken: 'p', message: 'at <SSN>' } },
        { result: { content: [{ text: 'is <SSN>' }] } },
      ])
    }
    const ofLegacy = await sendModern(at('both'), call('a_leak', {}, 'q'))
    expect(ofLegacy.text).not.toContain(ssn)
    expect(ofLegacy.message).toMatchObject({
      result: { content: [{ text: 'split <SSN>' }, {}, {}, {}] },
    })
    const refused = await sendModern(at('both'), call('a_echo', { text: 'forbidden' }))
    expect(refused.message).toMatchObject({
      result: { resultType: 'complete', isError: true, content: [{ text: 'Not this word' }] },
    })
  })

  it('mask the argument that a client completes, and the arguments that it chose before', async () => {
    const params = {
      ref: { type: 'ref/prompt', name: 'p' },
      argument: { name: 'to', value: 'ada@example.com' },
      context: { arguments: { from: 'bob@example.com' } },
    }
    await sendModern(at('modern'), modernRequest('completion/complete', params))
    expect(received.at(-1)).toMatchObject({
      argument: { name: 'to', value: '<EMAIL_ADDRESS>' },
      context: { arguments: { from: '<EMAIL_ADDRESS>' } },
    })
    const refused = { ...params, argument: { name: 'to', value: 'forbidden' } }
    const { message } = await sendModern(
      at('modern'),
      modernRequest('completion/complete', refused),
    )
    expect(message).toMatchObject({ error: { message: 'Not this word' } })
  })

  it('keep the stream that a client reads open until the end', async () => {
    const stream = await openModern(at('modern'), call('leak', {}, 'p'))
    expect(await stream.ended).toBe(true)
    expect(stream.messages).toHaveLength(2)
  })
})

describe('webhooks', () => {
  it('see arguments and results, refuse calls, and refuse them if they fail', async () => {
    const client = await connectClient(port, '/hooked')
    const echo = (text: string) => client.callTool({ name: 'echo', arguments: { text } })
    expect(textOf(await echo('fine'))).toBe('{"text":"fine"}')
    expect(await echo('an attack')).toMatchObject({
      isError: true,
      content: [{ text: 'No attacks' }],
    })
    expect(await echo('broken')).toMatchObject({
      isError: true,
      content: [{ text: 'The request could not be checked' }],
    })
    expect(await client.callTool({ name: 'secret' })).not.toHaveProperty('isError')
    await client.close()
  })
})

it('counts what guards have decided by policy and rule', async () => {
  const url = /metrics: (\S+)/.exec(running.stderr)?.[1] ?? ''
  const sample = (phase: string, rule: number, guard: string, action: string) =>
    `sluice_mcp_guard_checks_total{policy="GatewayPolicy default/legacy",phase="${phase}",rule="${rule}",guard="${guard}",action="${action}"}`
  const failed = 'phase="Request",rule="0",guard="webhook",action="Fail"'
  const text = await waitFor('the last count', async () => {
    const shown = await (await fetch(url)).text()
    return shown.includes(failed) ? shown : undefined
  })
  expect(text).toContain(sample('Request', 1, 'regex', 'Reject'))
  expect(text).toContain(sample('Response', 0, 'regex', 'Mask'))
  expect(text).toContain(sample('Response', 0, 'regex', 'Allow'))
  expect(text).not.toContain(ssn)
})

it('[MCPCallLimits.recordArguments] records arguments with the masks of all guards, and none without a mask', async () => {
  const { message } = await running.condition('GatewayPolicy', 'unmasked', 'Accepted', 'True')
  expect(message).toContain('calls.recordArguments: promptGuard.request has no regex guard')
  const client = await connectClient(port, '/unmasked')
  await client.callTool({ name: 'echo', arguments: { text: 'never recorded' } })
  await client.close()
  const other = await connectClient(port, '/legacy')
  await other.callTool({ name: 'echo', arguments: { text: 'y'.repeat(5_000) } })
  await other.close()
})

it('records what guards have found, without the text', async () => {
  await running.stop()
  const recorded = [...recordsIn(folder).values()].flatMap(
    ({ details }) => details['gen_ai.tool.call.arguments'] ?? [],
  )
  expect(recorded).toContain(
    '{"text":"ok","deep":{"list":[{"<EMAIL_ADDRESS>":"x <EMAIL_ADDRESS>"}],"exact":1.5,"no":null}}',
  )
  expect(recorded).toContain(`{"text":"${'y'.repeat(4_087)}…`)
  expect(recorded.join()).not.toMatch(/forbidden|example\.com/)
  expect(JSON.stringify([...recordsIn(folder).values()])).not.toContain('never recorded')
  const all = [...recordsIn(folder).values()]
  const refused = all.filter(({ details }) => details['sluice.mcp.refused.by'] === 'guard')
  expect(refused.length).toBeGreaterThanOrEqual(5)
  const notes = all.flatMap(({ steps }) => steps.flatMap(({ notes }) => notes))
  expect(notes).toContain(
    'tools/call of tool leak of target only: response guard 0 (regex): Mask, 4 matches of builtin Ssn',
  )
  expect(notes.join('\n')).toContain('request guard 1 (regex): Reject, 1 match of pattern 0')
  expect(notes.join('\n')).toContain('request guard 0 (webhook): Fail')
  expect(JSON.stringify(all)).not.toContain(ssn)
})
