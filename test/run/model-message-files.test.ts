/** Files of vendor C belong to the client that made them, and so do those that code in a container makes. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import Anthropic, { toFile } from '@anthropic-ai/sdk'
import { expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'

/** Ids at the vendor, which no client may see or use. */
const own = { file: 'file_own7', made: 'file_own8', container: 'container_own9' }
const seen: { path: string; headers: IncomingMessage['headers']; text: string }[] = []

const result = {
  type: 'bash_code_execution_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: {
    type: 'bash_code_execution_result',
    stdout: '',
    stderr: '',
    return_code: 0,
    content: [{ type: 'bash_code_execution_output', file_id: own.made }],
  },
}
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-opus-4-8',
  content: [result],
  container: { id: own.container, expires_at: '2027-01-01T00:00:00Z' },
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
}

function stream(response: ServerResponse): void {
  openStream(response)
  const { container, ...start } = message
  for (const event of [
    { type: 'message_start', message: { ...start, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: result },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null, container },
      usage: { output_tokens: 1 },
    },
    { type: 'message_stop' },
  ]) {
    sendEvent(response, event, event.type)
  }
  response.end()
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url = '', headers } = request
  const body = await text(request)
  const [path = ''] = url.split('?')
  seen.push({ path: `${method} ${path}`, headers, text: body })
  if (path === '/v1/messages') {
    if (JSON.parse(body).stream === true) stream(response)
    else json(response, 200, message)
  } else if (path.endsWith('/content')) response.writeHead(200).end('the content')
  else if (method === 'DELETE') json(response, 200, { id: own.file, type: 'file_deleted' })
  else json(response, 200, { id: own.file, type: 'file', filename: 'a.txt', size_bytes: 3 })
}

const vendor = useListening(createServer((request, response) => void answer(request, response)))
const port = await freePort()
useGateway(() => ({
  manifests: [
    gateway(port),
    secret('keys', {
      ann: JSON.stringify({ key: 'key-of-ann' }),
      bob: JSON.stringify({ key: 'key-of-bob' }),
    }),
    aiBackend(
      'c',
      { provider: { vendorC: {}, host: '127.0.0.1', port: vendor.port } },
      { auth: { key: 'gateway-key' } },
    ),
    routeByPath('c'),
    policy('c', 'HTTPRoute/c', {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
    }),
  ],
}))

const clientOf = (apiKey: string) =>
  new Anthropic({ baseURL: `http://127.0.0.1:${port}/c`, apiKey, maxRetries: 0 })
const [ann, bob] = [clientOf('key-of-ann'), clientOf('key-of-bob')]
const asked = { model: 'claude-opus-4-8', max_tokens: 9 }
const about = (id: string) => ({
  ...asked,
  messages: [
    {
      role: 'user' as const,
      content: [{ type: 'document', source: { type: 'file', file_id: id } } as never],
    },
  ],
})
const last = () => seen.at(-1)
const notFound = (what: string) => ({
  status: 404,
  error: { type: 'error', error: { message: expect.stringContaining(`no ${what} found`) } },
})

it('are made, used, read and deleted by the client that made them only', async () => {
  const file = await toFile(Buffer.from('abc'), 'a.txt', { type: 'text/plain' })
  const made = await ann.beta.files.upload({ file, betas: ['files-api-2025-04-14'] })
  expect(made.id).toMatch(/^file_/)
  expect(JSON.stringify(made)).not.toContain(own.file)
  expect(last()).toMatchObject({ path: 'POST /v1/files', text: expect.stringContaining('abc') })
  expect(last()?.headers['x-api-key']).toBe('gateway-key')
  expect(last()?.headers['anthropic-beta']).toContain('files-api-2025-04-14')
  expect((await ann.beta.files.retrieveMetadata(made.id)).id).toBe(made.id)
  expect(await (await ann.beta.files.download(made.id)).text()).toBe('the content')
  await ann.messages.create(about(made.id))
  expect(last()?.text).toContain(own.file)
  const before = seen.length
  for (const refer of [
    () => bob.beta.files.retrieveMetadata(made.id),
    () => bob.beta.files.download(made.id),
    () => bob.beta.files.delete(made.id),
    () => bob.messages.create(about(made.id)),
    () => bob.messages.countTokens(about(made.id)),
    () => ann.messages.create(about(own.file)),
  ]) {
    await expect(refer()).rejects.toMatchObject(notFound('file'))
  }
  expect(seen).toHaveLength(before)
  expect(await ann.beta.files.delete(made.id)).toMatchObject({ id: made.id })
})

it('of code that the vendor runs can be downloaded by the client that got their ids, whole and streamed', async () => {
  const tools = [{ type: 'code_execution_20250825', name: 'code_execution' } as never]
  const messages = [{ role: 'user' as const, content: 'Plot it' }]
  const whole = await ann.messages.create({ ...asked, tools, messages })
  const streamed = await ann.messages.stream({ ...asked, tools, messages }).finalMessage()
  for (const { content, container } of [whole, streamed] as {
    content: object
    container: object
  }[]) {
    const written = JSON.stringify([content, container])
    for (const id of Object.values(own)) expect(written).not.toContain(id)
    const [, id = ''] = /"file_id":"([^"]+)"/.exec(written) ?? []
    const [, place = ''] = /"id":"([^"]+)"/.exec(written) ?? []
    await ann.beta.files.download(id)
    expect(last()?.path).toBe(`GET /v1/files/${own.made}/content`)
    await expect(bob.beta.files.download(id)).rejects.toMatchObject(notFound('file'))
    const again = {
      ...asked,
      tools,
      container: place,
      messages: [...messages, { role: 'assistant' as const, content: content as never }],
    }
    await ann.messages.create(again as never)
    expect(JSON.parse(last()?.text ?? '')).toMatchObject({ container: own.container })
    expect(last()?.text).toContain(own.made)
    await expect(bob.messages.create(again as never)).rejects.toMatchObject(notFound('container'))
  }
})
