/** What providers store belongs to the client that made it: ids are sealed, and useless to every other client. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  policy,
  routeByPath,
  secret,
  servedModel,
} from '../support/manifests.ts'
import { startStoredVendor } from '../support/vendors/stored-vendor.ts'
import { startVendorC } from '../support/vendors/vendor-c.ts'

const one = useFixture(() => startStoredVendor('one'))
const two = useFixture(() => startStoredVendor('two'))
const claude = useFixture(startVendorC)
const ports = await freePorts('first', 'second')
const key = join(useFolder('sluice-stored-'), 'session.key')
writeFileSync(key, 'a secret that both processes share')

const routesTo = (name: string, ai: object, settings: object = {}) => [
  aiBackend(name, ai as Record<string, unknown>, { auth: { key: 'gateway-key' }, ...settings }),
  routeByPath(name),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  }),
]

/** Models by name, whose Gateway has the keys of `both`. */
const servedModels = (models: Readonly<Record<string, number>>) => [
  httpRoute('served', {
    rules: [
      {
        matches: [{ path: { value: '/served' } }],
        backendRefs: [{ group: 'sluice.dev', kind: 'AgentgatewayModel', name: '*' }],
      },
    ],
  }),
  policy('served', 'HTTPRoute/served', {
    traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  }),
  ...Object.entries(models).map(([name, at]) =>
    servedModel(name, {
      parentRefs: [{ kind: 'HTTPRoute', name: 'served' }],
      provider: 'OpenAI',
      baseURL: `http://127.0.0.1:${at}/v1`,
    }),
  ),
]

const manifests = (port: number) => {
  const at = (vendor: { port: number }) => ({ host: '127.0.0.1', port: vendor.port })
  const groups = [one, two].map((vendor, index) => ({
    providers: [{ name: index === 0 ? 'one' : 'two', vendorA: {}, ...at(vendor) }],
  }))
  const masked = { response: [{ regex: { matches: ['I am'], action: 'Mask' } }] }
  return [
    gateway(port),
    secret('keys', {
      ann: JSON.stringify({ key: 'key-of-ann' }),
      annAgain: JSON.stringify({ key: 'new-key-of-ann', metadata: { id: 'ann' } }),
      bob: JSON.stringify({ key: 'key-of-bob' }),
      limited: JSON.stringify({ key: 'key-of-limited', allowedModels: ['gpt-5'] }),
    }),
    ...routesTo('both', { groups }),
    ...routesTo('failing', { groups, failover: { statuses: [409, 500] } }),
    ...routesTo('other', { provider: { vendorA: {}, ...at(one) } }),
    ...routesTo('named', {
      groups: [{ providers: [{ name: 'two', vendorA: { model: 'own-model' }, ...at(two) }] }],
    }),
    ...routesTo(
      'guarded',
      { provider: { vendorA: {}, ...at(one) } },
      { ai: { promptGuard: masked } },
    ),
    ...servedModels({ a: one.port, b: two.port }),
    ...routesTo('translated', { provider: { vendorC: {}, ...at(claude) } }),
  ]
}

for (const port of [ports.first, ports.second]) {
  useGateway(() => ({
    manifests: manifests(port),
    args: ['--session-key-file', key, '--workers', '1'],
  }))
}

const clientOf = (apiKey: string, name = 'both', port = ports.first) =>
  new OpenAI({ baseURL: `http://127.0.0.1:${port}/${name}/v1`, apiKey, maxRetries: 0 })
const ann = () => clientOf('key-of-ann')
const bob = () => clientOf('key-of-bob')
const ask = { model: 'gpt-5', input: 'Hello' }
const unknown = { status: 404, message: expect.stringMatching(/found with id/) }
const refused = (text: string) => ({ status: 400, message: expect.stringContaining(text) })

/** The ids of the vendor, which no client may see. */
const canary = /(?:resp_|msg_|conv_|file-|batch_|audio_)(?:one|two)\d/

async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}

/** Makes the first provider refuse one request, so that the second one gets it; the first one stays in use. */
function failOnce(): void {
  one.next.push((_, response) => response.writeHead(409).end())
}

beforeEach(() => {
  one.calls.length = 0
  two.calls.length = 0
})

describe('a stored response', () => {
  it('is continued, read, listed, cancelled and deleted by the client that made it, on every replica', async () => {
    const first = await ann().responses.create(ask)
    expect(JSON.stringify(first)).not.toMatch(canary)
    expect(first.id).toMatch(/^resp_/)
    for (const port of [ports.first, ports.second]) {
      const client = clientOf('key-of-ann', 'both', port)
      const next = await client.responses.create({ ...ask, previous_response_id: first.id })
      expect(next.previous_response_id).toBe(first.id)
      expect(one.calls.at(-1)?.body.previous_response_id).toMatch(/^resp_one\d+$/)
    }
    const { responses } = clientOf('new-key-of-ann', 'both', ports.second)
    const read = await responses.retrieve(first.id)
    expect([read.id, read.output[0]?.id]).toEqual([first.id, first.output[0]?.id])
    const items = await responses.inputItems.list(first.id)
    expect(JSON.stringify(items)).not.toMatch(canary)
    const after = items.data[0]?.id ?? ''
    await responses.inputItems.list(first.id, { after })
    expect(one.calls.at(-1)?.path).toMatch(/after=msg_one\d+$/)
    expect((await responses.cancel(first.id)).id).toBe(first.id)
    await responses.delete(first.id)
    await expect(responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
  })

  it('is unknown to every other client, at other backends, and by the id of the vendor', async () => {
    const first = await ann().responses.create(ask)
    const raw = [...one.stored.keys()].findLast((id) => id.startsWith('resp_')) ?? ''
    const sent = one.calls.length
    const strangers = [
      [bob(), first.id],
      [clientOf('key-of-ann', 'other'), first.id],
      [ann(), raw],
      [ann(), `${first.id}A`],
      [ann(), first.id.replace('resp_', 'msg_')],
      [ann(), first.output[0]?.id ?? ''],
    ] as const
    for (const [client, id] of strangers) {
      for (const refer of [
        () => client.responses.retrieve(id),
        () => client.responses.delete(id),
        () => client.responses.cancel(id),
        () => client.responses.inputItems.list(id).then((page) => page.data),
        () => client.responses.create({ ...ask, previous_response_id: id }),
        () => client.responses.compact({ model: 'gpt-5', previous_response_id: id }),
        () => client.responses.inputTokens.count({ ...ask, previous_response_id: id }),
      ]) {
        await expect(refer()).rejects.toMatchObject(unknown)
      }
    }
    expect([one.calls.length, two.calls.length]).toEqual([sent, 0])
  })

  it('has the same ids in every event of a stream, and in a stream that is read again', async () => {
    const events = await collect(await ann().responses.create({ ...ask, stream: true }))
    expect(JSON.stringify(events)).not.toMatch(canary)
    const ids = new Set(events.flatMap((event) => ('response' in event ? [event.response.id] : [])))
    expect(ids.size).toBe(1)
    const items = new Set(events.flatMap((event) => ('item_id' in event ? [event.item_id] : [])))
    expect(items.size).toBe(1)
    const [id = ''] = ids
    const again = await collect(await ann().responses.retrieve(id, { stream: true }))
    expect(JSON.stringify(again)).not.toMatch(canary)
    expect(again.at(-1)).toMatchObject({ type: 'response.completed', response: { id } })
    await expect(bob().responses.retrieve(id, { stream: true })).rejects.toMatchObject(unknown)
  })

  it('is served by the provider that has it, also if another one would be chosen', async () => {
    const { responses } = clientOf('key-of-ann', 'failing')
    failOnce()
    const first = await responses.create(ask)
    expect([one.calls.length, two.calls.length]).toEqual([1, 1])
    const next = await responses.create({ ...ask, previous_response_id: first.id })
    expect(next.output_text).toBe('I am two')
    expect((await responses.retrieve(first.id)).id).toBe(first.id)
    two.next.push((_, response) => response.writeHead(500).end('{}'))
    await expect(
      responses.create({ ...ask, previous_response_id: first.id }),
    ).rejects.toMatchObject({ status: 500 })
    expect([one.calls.length, two.calls.length]).toEqual([1, 4])
    failOnce()
    const { conversations } = clientOf('key-of-ann', 'failing')
    const made = await conversations.create({})
    const told = await responses.create({ ...ask, conversation: made.id })
    expect([told.output_text, one.calls.length]).toEqual(['I am two', 2])
    const elsewhere = await responses.create(ask)
    expect(elsewhere.output_text).toBe('I am one')
    const input = [first.output[0], elsewhere.output[0]].map((item) => ({
      type: 'item_reference' as const,
      id: item?.id ?? '',
    }))
    await expect(responses.create({ ...ask, input })).rejects.toMatchObject(
      refused('it is stored at another provider'),
    )
  })

  it('lends its items to the client that made it, by reference and with their content', async () => {
    const first = await ann().responses.create(ask)
    const [item] = first.output
    const reference = { type: 'item_reference' as const, id: item?.id ?? '' }
    await ann().responses.create({ ...ask, input: [reference] })
    const [sent] = (one.calls.at(-1)?.body.input ?? []) as { id: string }[]
    expect(sent?.id).toMatch(/^msg_one\d+$/)
    await expect(bob().responses.create({ ...ask, input: [reference] })).rejects.toMatchObject(
      unknown,
    )
    const own = { ...item, id: sent?.id } as never
    await bob().responses.create({ ...ask, input: [own] })
    expect(one.calls.at(-1)?.body.input).toEqual([
      expect.not.objectContaining({ id: expect.anything() }),
    ])
  })

  it('is guarded when it is read, and has no readable ids if nothing is stored', async () => {
    const guarded = clientOf('key-of-ann', 'guarded')
    const first = await guarded.responses.create(ask)
    expect((await guarded.responses.retrieve(first.id)).output_text).toBe('<masked> one')
    const events = await collect(await guarded.responses.retrieve(first.id, { stream: true }))
    expect(JSON.stringify(events)).not.toContain('I am')
    await expect(guarded.responses.inputItems.list(first.id)).rejects.toMatchObject(
      refused('guards of responses cannot read'),
    )
    const named = clientOf('key-of-ann', 'named')
    const other = await named.responses.create(ask)
    expect((await named.responses.retrieve(other.id)).model).toBe('gpt-5')
    const passed = await ann().responses.create({ ...ask, store: false })
    expect(passed.id).toMatch(canary)
  })

  it('can be an answer in sound, whole or streamed, for the client that asked for it', async () => {
    const failing = (key: string, port = ports.first) => clientOf(key, 'failing', port)
    const messages = [{ role: 'user', content: 'Hello' }]
    const audio = { voice: 'alloy', format: 'wav' }
    const request = { model: 'gpt-5', messages, modalities: ['text', 'audio'], audio }
    const speak = async (client: OpenAI, more: object = {}) =>
      client.chat.completions.create({ ...request, ...more } as never) as unknown
    failOnce()
    const whole = (await speak(failing('key-of-ann'))) as OpenAI.ChatCompletion
    const sound = whole.choices[0]?.message.audio
    expect([sound?.transcript, sound?.data]).toEqual(['I am two', 'AAAA'])
    const streamed = await speak(failing('key-of-ann'), { stream: true })
    const chunks = await collect(streamed as AsyncIterable<OpenAI.ChatCompletionChunk>)
    expect(JSON.stringify([whole, chunks])).not.toMatch(canary)
    const inStream = chunks.flatMap(({ choices }) =>
      choices.map(({ delta }) => (delta as { audio?: { id: string } }).audio?.id),
    )
    expect(new Set(inStream).size).toBe(2)
    const following = (id: string | undefined) => ({
      messages: [...messages, { role: 'assistant', audio: { id } }, messages[0]],
    })
    const text = { modalities: ['text'], audio: undefined }
    await speak(failing('key-of-ann', ports.second), { ...following(sound?.id), ...text })
    expect(two.calls.at(-1)?.text).toMatch(/"audio":\{"id":"audio_two\d+"\}/)
    await speak(failing('key-of-ann'), following(inStream[2]))
    expect(one.calls.at(-1)?.text).toMatch(/"audio":\{"id":"audio_one\d+"\}/)
    const own = [...two.stored.keys()].find((id) => id.startsWith('audio_'))
    const foreign = [following(sound?.id), following(own)].map(
      (more) => () => speak(failing('key-of-bob'), more),
    )
    for (const refer of [...foreign, () => speak(failing('key-of-ann'), following(own))]) {
      await expect(refer()).rejects.toMatchObject({
        status: 404,
        message: expect.stringContaining('messages[1].audio.id: no audio found with id'),
      })
    }
  })

  it('is found by the model that stores it, if the backend serves certain models', async () => {
    const client = clientOf('key-of-ann', 'served')
    const first = await client.responses.create({ ...ask, model: 'b' })
    expect(first.output_text).toBe('I am two')
    expect((await client.responses.retrieve(first.id)).id).toBe(first.id)
    await expect(
      client.responses.create({ ...ask, model: 'a', previous_response_id: first.id }),
    ).rejects.toMatchObject(refused('no provider of the model a stores'))
    await expect(client.conversations.create({})).rejects.toMatchObject(refused('?model=NAME'))
    const made = await client.conversations.create({}, { query: { model: 'b' } })
    await client.responses.create({ ...ask, model: 'b', conversation: made.id })
    expect(two.calls.map(({ path }) => path)).toEqual([
      '/v1/responses',
      expect.stringMatching(/^\/v1\/responses\/resp_two\d+$/),
      '/v1/conversations',
      '/v1/responses',
    ])
  })

  it('is not there if the provider has no such API', async () => {
    const client = clientOf('key-of-ann', 'translated')
    const first = await client.responses.create(ask)
    await expect(client.responses.retrieve(first.id)).rejects.toMatchObject(unknown)
    await expect(client.conversations.create({})).rejects.toMatchObject(
      refused('unsupported conversion: from Conversations'),
    )
  })
})

const file = () => toFile(Buffer.from('{"custom_id":"1"}'), 'requests.jsonl')

describe('conversations, files and batches', () => {
  it('belong to the client that made them', async () => {
    const { conversations, responses } = ann()
    const made = await conversations.create({ items: [{ role: 'user', content: 'Hello' }] })
    expect(made.id).not.toMatch(canary)
    const answer = await responses.create({ ...ask, conversation: made.id })
    expect(answer.conversation?.id).toBe(made.id)
    const { data } = await conversations.items.list(made.id)
    expect(JSON.stringify(data)).not.toMatch(canary)
    const item = data[0]?.id ?? ''
    await conversations.items.retrieve(item, { conversation_id: made.id })
    expect((await conversations.update(made.id, { metadata: { a: 'b' } })).id).toBe(made.id)
    const others = bob()
    for (const refer of [
      () => others.conversations.retrieve(made.id),
      () => others.conversations.update(made.id, { metadata: {} }),
      () => others.conversations.delete(made.id),
      () => others.conversations.items.list(made.id),
      () => others.conversations.items.retrieve(item, { conversation_id: made.id }),
      () => others.responses.create({ ...ask, conversation: { id: made.id } }),
    ]) {
      await expect(refer()).rejects.toMatchObject(unknown)
    }
    await conversations.delete(made.id)
  })

  it('lead from a file to a batch to its results at one provider, for one client', async () => {
    const client = ann()
    const input = await client.files.create({ file: await file(), purpose: 'batch' })
    expect([input.filename, input.bytes]).toEqual(['requests.jsonl', 17])
    const endpoint = '/v1/responses'
    const create = { input_file_id: input.id, endpoint, completion_window: '24h' } as const
    const batch = await client.batches.create(create)
    expect(batch.input_file_id).toBe(input.id)
    const done = await clientOf('key-of-ann', 'both', ports.second).batches.retrieve(batch.id)
    expect(JSON.stringify([input, batch, done])).not.toMatch(canary)
    expect(done.id).toBe(batch.id)
    const output = done.output_file_id ?? ''
    expect(await (await client.files.content(output)).text()).toMatch(
      /^results of file-(one|two)\d/,
    )
    expect((await client.batches.cancel(batch.id)).status).toBe('cancelled')
    const text = { type: 'input_file' as const, file_id: input.id }
    await client.responses.create({ ...ask, input: [{ role: 'user', content: [text] }] })
    const messages = [
      { role: 'user' as const, content: [{ type: 'file' as const, file: { file_id: input.id } }] },
    ]
    const others = bob()
    for (const refer of [
      () => others.files.retrieve(input.id),
      () => others.files.content(output),
      () => others.files.delete(input.id),
      () => others.batches.create(create),
      () => others.batches.retrieve(batch.id),
      () => others.batches.cancel(batch.id),
      () => others.responses.create({ ...ask, input: [{ role: 'user', content: [text] }] }),
      () => others.chat.completions.create({ model: 'gpt-5', messages }),
    ]) {
      await expect(refer()).rejects.toMatchObject(unknown)
    }
    for (const list of [() => client.files.list(), () => client.batches.list()]) {
      await expect(list()).rejects.toMatchObject(
        refused('lists of everything stored are not served'),
      )
    }
    const limited = clientOf('key-of-limited')
    await expect(limited.batches.create(create)).rejects.toMatchObject({ status: 403 })
    await expect(clientOf('key-of-ann', 'named').batches.create(create)).rejects.toMatchObject(
      refused('batches are not supported where chosen models apply'),
    )
    await client.files.delete(input.id)
  })
})
