/** Calls of tools that a person must approve: through the client in both eras, or through a service. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
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
import { connectClient } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { connectSdkClient } from '../support/mcp-sdks.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream } from '../support/upstream.ts'

const done: string[] = []

function offer(server: McpServer): void {
  const tool = (name: string, annotations: object) =>
    server.registerTool(name, { inputSchema: { id: z.string() }, annotations }, ({ id }) => {
      done.push(`${name} ${id}`)
      return { content: [{ type: 'text', text: `${name} ${id} done` }] }
    })
  tool('delete', { destructiveHint: true })
  tool('read', { readOnlyHint: true })
  tool('write', {})
}

const server = useMcpServer({ offer })
const stateless = useMcpServer({ offer, isStateless: true })
const key = { method: 'elicitation/create', params: { message: 'sure?', requestedSchema: {} } }
const modern = useModernServer({
  answers: {
    'tools/list': () => ({
      tools: ['delete', 'ask'].map((name) => ({
        name,
        inputSchema: { type: 'object' },
        annotations: { destructiveHint: true },
      })),
    }),
    'tools/call': ({ params }) => {
      done.push(`modern ${String(params.name)}`)
      if (params.name === 'ask' && params.inputResponses === undefined) {
        return { resultType: 'input_required', inputRequests: { key }, requestState: 'own' }
      }
      const { inputResponses, requestState } = params
      const text = JSON.stringify({ inputResponses, requestState })
      return { content: [{ type: 'text', text }] }
    },
  },
})
const approver = useFixture(() =>
  startUpstream('approver', ({ path, body }, response) => {
    const asked = JSON.parse(body) as { arguments: { id: string } }
    const { id } = asked.arguments
    if (path !== '/approve' || id === 'broken') response.writeHead(500).end()
    else if (id === 'silent') return
    else response.end(JSON.stringify({ approved: id === 'good', reason: `${id} is not allowed` }))
  }),
)

const folder = useFolder('sluice-mcp-approval-')
const port = await freePort()
const running = useGateway(() => {
  const target = (name: string, { port: at }: { readonly port: number }) => ({
    name,
    static: { host: '127.0.0.1', port: at },
  })
  const served = (
    name: string,
    targets: readonly Manifest[],
    approval: object,
    more: object = {},
  ) => [
    mcpBackend(name, targets),
    routeByPath(name),
    policy(name, `GatewayBackend/${name}`, { backend: { mcp: { approval, ...more } } }),
  ]
  return {
    manifests: [
      gateway(port),
      staticBackend('approver', approver.port),
      ...served('one', [target('only', server)], { annotated: 'Destructive' }),
      ...served('both', [target('a', stateless), target('m', modern)], {
        annotated: 'Destructive',
      }),
      ...served('strict', [target('only', server)], { annotated: 'NotReadOnly', timeout: '300ms' }),
      ...served('named', [target('only', server)], {
        tools: ['read'],
        when: 'mcp.tool.name == "write" && mcp.tool.arguments.id.size() > 3',
      }),
      ...served(
        'asked',
        [target('only', server)],
        {
          annotated: 'Destructive',
          webhook: toBackend('approver'),
          timeout: '1s',
        },
        { promptGuard: { request: [{ regex: { builtins: ['Email'] } }] } },
      ),
    ],
    args: ['--record', 'errors', '--record-dir', folder],
  }
})

const at = (path: string) => `http://127.0.0.1:${port}/${path}`

/** A client whose user answers with `action`; undefined if it never does. */
function useUser(path: string, asked: string[], action: string | undefined) {
  return useFixture(async () => {
    const client = await connectClient(port, `/${path}`, { capabilities: { elicitation: {} } })
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params.message)
      return action === undefined ? new Promise<never>(() => {}) : { action, content: {} }
    })
    return client
  })
}
const call = (client: Client, name: string, id = '1') =>
  client.callTool({ name, arguments: { id } })
const isRefused = (text: string) => ({
  isError: true,
  content: [{ text: expect.stringContaining(text) }],
})

describe('approval by the user of a legacy client', () => {
  const asked: string[] = []
  const yes = useUser('one', asked, 'accept')
  const no = useUser('one', asked, 'decline')
  const joined = useUser('both', asked, 'accept')
  const late = useUser('strict', [], undefined)
  const named = useUser('named', [], 'decline')

  it('is asked for before the call of a destructive tool, with its arguments', async () => {
    expect(await call(yes, 'delete')).toMatchObject({ content: [{ text: 'delete 1 done' }] })
    expect(asked.splice(0)).toEqual(['Allow the call of the tool delete of only with {"id":"1"}?'])
    expect(await call(yes, 'read')).toMatchObject({ content: [{ text: 'read 1 done' }] })
    expect(await call(yes, 'write')).toMatchObject({ content: [{ text: 'write 1 done' }] })
    expect(asked).toEqual([])
    expect(await call(joined, 'a_delete')).toMatchObject({ content: [{ text: 'delete 1 done' }] })
    expect(await joined.callTool({ name: 'm_delete' })).not.toHaveProperty('isError')
    expect(asked.splice(0)).toHaveLength(2)
  })

  it('refuses the call if the user declines, does not answer, or cannot be asked', async () => {
    const before = done.length
    expect(await call(no, 'delete')).toMatchObject(isRefused('The user did not approve'))
    expect(await call(late, 'write')).toMatchObject(isRefused('Nobody approved this call in time'))
    const unable = await connectClient(port, '/one')
    expect(await call(unable, 'delete')).toMatchObject(isRefused('the client cannot ask its user'))
    await unable.close()
    expect(await call(named, 'read')).toMatchObject(isRefused('The user did not approve'))
    expect(await call(named, 'write', 'long id')).toMatchObject(isRefused('did not approve'))
    expect(done.length).toBe(before)
    expect(await call(named, 'write')).not.toHaveProperty('isError')
  })
})

describe('approval by the user of a modern client', () => {
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
  const send = (name: string, params: object = {}, args: object = {}) =>
    sendModern(
      at('both'),
      modernRequest('tools/call', { name, arguments: args, ...params }, { meta }),
    )
  const accepted = { 'sluice-approval': { action: 'accept', content: {} } }
  const stateIn = ({ message }: Awaited<ReturnType<typeof send>>) =>
    (message as { result?: { requestState?: string } } | undefined)?.result?.requestState ?? ''

  it('needs a repeated call with the answer of the user, once and for this call only', async () => {
    const before = done.length
    const first = await send('m_delete')
    expect(first.message).toMatchObject({
      result: {
        resultType: 'input_required',
        inputRequests: { 'sluice-approval': { method: 'elicitation/create' } },
      },
    })
    const requestState = stateIn(first)
    const declined = { 'sluice-approval': { action: 'decline' } }
    for (const [params, args] of [
      [{ requestState, inputResponses: declined }, {}],
      [{ requestState }, {}],
      [{ requestState, inputResponses: accepted }, { other: 'arguments' }],
    ] as const) {
      const { message } = await send('m_delete', params, args)
      expect(message).toMatchObject({ result: isRefused('did not approve') })
    }
    const forged = await send('m_delete', { requestState: 'own', inputResponses: accepted })
    expect(forged.message).toMatchObject({ result: { resultType: 'input_required' } })
    expect(done.length).toBe(before)
    const params = { requestState, inputResponses: accepted }
    const { message } = await send('m_delete', params)
    expect(message).toMatchObject({ result: { content: [{ text: '{}' }] } })
    expect((await send('m_delete', params)).message).toMatchObject({ result: { isError: true } })
    expect(done.length).toBe(before + 1)
  })

  it('goes along with what the server itself asks', async () => {
    const first = await send('m_ask')
    const second = await send('m_ask', { requestState: stateIn(first), inputResponses: accepted })
    expect(second.message).toMatchObject({
      result: { resultType: 'input_required', inputRequests: { key } },
    })
    expect(stateIn(second)).not.toBe('own')
    const inputResponses = { key: { action: 'accept' } }
    const third = await send('m_ask', { requestState: stateIn(second), inputResponses })
    const text = JSON.stringify({ inputResponses, requestState: 'own' })
    expect(third.message).toMatchObject({ result: { content: [{ text }] } })
  })

  it('reaches legacy servers, and refuses clients that cannot ask', async () => {
    const requestState = stateIn(await send('a_delete', {}, { id: '7' }))
    const { message } = await send(
      'a_delete',
      { requestState, inputResponses: accepted },
      { id: '7' },
    )
    expect(message).toMatchObject({ result: { content: [{ text: 'delete 7 done' }] } })
    const unable = await sendModern(at('both'), modernRequest('tools/call', { name: 'm_delete' }))
    expect(unable.message).toMatchObject({ result: isRefused('the client cannot ask its user') })
  })
})

describeWithParts(['mcp-sdks'], 'the second generation of the SDK', () => {
  it('asks its user and repeats the call by itself', async () => {
    const client = await connectSdkClient(at('both'), 'auto')
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    const result = await client.callTool({ name: 'a_delete', arguments: { id: 'sdk' } })
    expect(result).toMatchObject({ content: [{ text: 'delete sdk done' }] })
    await client.close()
  })
})

describe('approval by a service', () => {
  it('is asked for with what guards have left of the arguments', async () => {
    const client = await connectClient(port, '/asked')
    expect(await call(client, 'delete', 'good')).toMatchObject({
      content: [{ text: 'delete good done' }],
    })
    expect(JSON.parse(approver.received.at(-1)?.body ?? '')).toMatchObject({
      backend: 'default/asked',
      target: 'only',
      tool: 'delete',
      arguments: { id: 'good' },
    })
    const before = done.length
    for (const [id, text] of [
      ['ada@example.com', 'This call was not approved: <EMAIL_ADDRESS> is not allowed'],
      ['broken', 'Nobody approved this call in time'],
      ['silent', 'Nobody approved this call in time'],
    ] as const) {
      expect(await call(client, 'delete', id)).toMatchObject(isRefused(text))
    }
    expect(done.length).toBe(before)
    await client.close()
  })
})

it('records who approved a call, and why it was refused', async () => {
  await running.stop()
  const all = [...recordsIn(folder).values()]
  const notes = all.flatMap(({ steps }) => steps.flatMap(({ notes }) => notes)).join('\n')
  for (const text of [
    'tools/call of tool delete of target only: approved by the user',
    'tools/call of tool delete of target only: approved by the service',
    'tools/call of tool delete of target m: the client asks its user for approval',
    'not approved: the user has declined',
    'not approved: no approval in time',
    'not approved: the client cannot ask its user',
    'not approved: the approval is for another call',
    'not approved: the approval was used before',
    'not approved: the service answered 500',
  ]) {
    expect(notes).toContain(text)
  }
  expect(all.some(({ details }) => details['sluice.mcp.refused.by'] === 'approval')).toBe(true)
})
