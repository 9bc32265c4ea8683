/** Ids of what the provider's account stores, in the formats of Gemini and of Anthropic, and in settings of policies. */
import { beforeEach, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'

const noRoutes = { ai: undefined, auth: { key: 'gateway-key' } }
const set = (fields: Readonly<Record<string, unknown>>) => ({
  ...noRoutes,
  ai: { overrides: Object.entries(fields).map(([field, value]) => ({ field, value })) },
})
const search = [{ type: 'file_search', vector_store_ids: ['vs_of_account'] }]
const cache = 'cachedContents/of-account'

const fleet = useFleet(({ at }) => [
  reached('a', { vendorA: {}, ...at('a') }, noRoutes),
  reached('searching', { vendorA: {}, ...at('a') }, set({ tools: search })),
  reached('c', { vendorC: {}, ...at('c') }, noRoutes),
  reached('d', { vendorD: {}, ...at('d') }, noRoutes),
  reached('cached', { vendorD: {}, ...at('d') }, set({ cachedContent: cache })),
])
beforeEach(() => fleet.forget())

async function post(path: string, body: unknown) {
  const response = await fetch(fleet.base('') + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

const ofAccount = expect.stringContaining('ids of the provider are not accepted from clients')
const model = '/v1beta/models/gemini-2.5-pro'
const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]
const withFile = (fileUri: unknown, more = {}) => ({
  contents: [{ role: 'user', parts: [{ fileData: { fileUri, mimeType: 'image/png' } }] }],
  ...more,
})

it('refuses what the account at Gemini stores, under every name that the vendor may read', async () => {
  const api = 'https://generativelanguage.googleapis.com/v1beta/files/abc'
  const files = [
    api,
    api.replace('https', 'HTTP').replace('.com', '.com.'),
    api.replace('generative', 'user@Generative'),
    'https://generativelanguage.mtls.googleapis.com/v1/files/abc?x=1',
    'https://proxy.test/gemini/v1beta/files/abc',
    'files/abc',
    'ftp://files.test/abc',
  ]
  const bodies: unknown[] = [
    ...files.map((uri) => withFile(uri)),
    { contents: [{ parts: [{ file_data: { file_uri: api } }] }] },
    { contents: [{ parts: [{ fileData: { FileUri: api } }] }] },
    { contents: [{ parts: [{ functionResponse: { parts: [{ fileData: { fileUri: api } }] } }] }] },
    { contents, systemInstruction: { parts: [{ fileData: { fileUri: api } }] } },
    { contents, cachedContent: cache },
    { contents, cached_content: cache },
    `{"contents":${JSON.stringify(contents)},"cached\\u0043ontent":"${cache}"}`,
    { contents, tools: [{ fileSearch: { fileSearchStoreNames: ['fileSearchStores/x'] } }] },
    { contents, tools: [{ retrieval: { vertexAiSearch: { datastore: 'x' } } }] },
  ]
  for (const body of bodies) {
    const { status, text } = await post(`d${model}:generateContent`, body)
    expect([status, text], JSON.stringify(body)).toEqual([400, ofAccount])
    expect(JSON.parse(text)).toMatchObject({ error: { status: 'INVALID_ARGUMENT' } })
  }
  const others: readonly (readonly [string, unknown])[] = [
    [`${model}:streamGenerateContent?alt=sse`, withFile(api)],
    [`${model}:countTokens`, { generateContentRequest: { contents, cachedContent: cache } }],
    [`${model}:countTokens`, withFile(api)],
    [`${model}:embedContent`, { content: withFile(api).contents[0] }],
    ['/v1/chat/completions', { model: 'gemini-2.5-pro', messages: [], cachedContent: cache }],
    ['/v1/messages', { model: 'm', max_tokens: 9, messages: [], cachedContent: cache }],
    ['/v1/messages/count_tokens', { model: 'm', messages: [], cachedContent: cache }],
    ['/v1/responses', { model: 'm', input: 'Hello', cachedContent: cache }],
  ]
  for (const [path, body] of others) {
    const { status, text } = await post(`d${path}`, body)
    expect([status, text], `${path} ${JSON.stringify(body)}`).toEqual([400, ofAccount])
  }
  expect(fleet.vendors.d.calls).toHaveLength(0)
})

it('forwards locations, and texts that only look like ids, to Gemini', async () => {
  const locations = [
    'https://images.test/v1/files/a/b.png',
    'https://storage.googleapis.com/public/files/a.png',
    'https://www.youtube.com/watch?v=x',
    'gs://bucket/a.png',
  ]
  const said = { functionCall: { name: 'f', args: { fileUri: 'files/abc', retrieval: 1 } } }
  const heard = { functionResponse: { name: 'f', response: { cachedContent: cache } } }
  const bodies = [
    ...locations.map((uri) => withFile(uri)),
    {
      contents: [
        { role: 'model', parts: [said] },
        { role: 'user', parts: [heard] },
      ],
    },
    { contents, cachedContent: null },
  ]
  for (const body of bodies) {
    const { status, text } = await post(`d${model}:generateContent`, body)
    expect(status, `${JSON.stringify(body)} ${text}`).toBe(200)
    expect(fleet.lastCall('d')?.body).toEqual(body)
  }
})

it('lets a policy name a cache and a vector store for all clients', async () => {
  const asked = { model: 'gemini-2.5-pro', messages: [{ role: 'user', content: 'Hello' }] }
  const own = { ...asked, cachedContent: 'cachedContents/of-client' }
  for (const body of [asked, own]) {
    expect((await post('cached/v1/chat/completions', body)).status).toBe(200)
    expect(fleet.lastCall('d')?.body.cachedContent).toBe(cache)
  }
  expect((await post(`cached${model}:generateContent`, { contents })).status).toBe(200)
  expect(fleet.lastCall('d')?.body.cachedContent).toBe(cache)
  const ownTools = [{ type: 'file_search', vector_store_ids: ['vs_of_client'] }]
  const input = { model: 'gpt-5', input: 'Hello' }
  for (const body of [input, { ...input, tools: ownTools }]) {
    expect((await post('searching/v1/responses', body)).status).toBe(200)
    expect(fleet.lastCall('a')?.body.tools).toEqual(search)
  }
  expect(await post('a/v1/responses', { ...input, tools: ownTools })).toEqual({
    status: 400,
    text: ofAccount,
  })
})

it('refuses ids in messages in another case, and sources in earlier results', async () => {
  const of = (block: unknown) => ({
    ...{ model: 'claude-sonnet-4-5', max_tokens: 9 },
    messages: [{ role: 'user', content: [block] }],
  })
  const source = { type: 'file', file_id: 'file_raw' }
  const document = { type: 'document', source }
  const bodies: readonly (readonly [number, unknown])[] = [
    [404, of(document)],
    [404, of({ type: 'web_fetch_tool_result', tool_use_id: 's', content: { content: document } })],
    [400, of({ type: 'document', source: { type: 'file', File_Id: 'file_raw' } })],
    [400, { ...of({ type: 'text', text: 'x' }), Container: 'container_raw' }],
    [400, { ...of({ type: 'text', text: 'x' }), container: { ID: 'container_raw' } }],
    [400, { ...of(document), messages: [{ role: 'user', Content: [document] }] }],
  ]
  for (const [status, body] of bodies) {
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
      const refusal = await post(`c${path}`, body)
      expect(refusal.status, `${JSON.stringify(body)} ${refusal.text}`).toBe(status)
    }
  }
  expect(fleet.vendors.c.calls).toHaveLength(0)
  const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { File_Id: 'x' } }
  const sent = of({ type: 'text', text: 'x' })
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'done' }
  const tools = [{ name: 'f', input_schema: { type: 'object' } }]
  const messages = [
    ...sent.messages,
    { role: 'assistant', content: [call] },
    { role: 'user', content: [result] },
  ]
  expect(await post('c/v1/messages', { ...sent, tools, messages })).toMatchObject({ status: 200 })
})
