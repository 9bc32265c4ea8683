/** Ids of what providers store, in places and in cases in which clients could evade their seals. */
import OpenAI, { toFile } from 'openai'
import { expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { startStoredVendor } from '../support/vendors/stored-vendor.ts'

const vendor = useFixture(() => startStoredVendor('one'))
const port = await freePort()
useGateway(() => ({
  manifests: [
    gateway(port),
    secret('keys', {
      ann: JSON.stringify({ key: 'key-of-ann' }),
      bob: JSON.stringify({ key: 'key-of-bob' }),
    }),
    aiBackend('model', { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } }),
    routeByPath('model'),
    policy('model', 'HTTPRoute/model', {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
    }),
  ],
  args: ['--workers', '1'],
}))

const clientOf = (apiKey: string) =>
  new OpenAI({ baseURL: `http://127.0.0.1:${port}/model/v1`, apiKey, maxRetries: 0 })
const ann = () => clientOf('key-of-ann')
const bob = () => clientOf('key-of-bob')
const ask = { model: 'gpt-5', input: 'Hello' }
const unknown = { status: 404, message: expect.stringMatching(/found with id/) }
const refused = (text: string) => ({ status: 400, message: expect.stringContaining(text) })

it('things of other clients are not reachable by ids in another place, or in another case', async () => {
  const client = ann()
  const input = await client.files.create({
    file: await toFile(Buffer.from('x'), 'a.png'),
    purpose: 'vision',
  })
  const edit = (of: OpenAI, id: string) =>
    of.post('/images/edits', {
      body: {
        ...{ model: 'gpt-image-1', prompt: 'Blue' },
        ...{ images: [{ file_id: id }], mask: { file_id: id } },
      },
    })
  await edit(client, input.id)
  const [raw = ''] = [...vendor.stored.keys()].filter((id) => id.startsWith('file-')).slice(-1)
  expect(vendor.calls.at(-1)?.body).toMatchObject({
    images: [{ file_id: raw }],
    mask: { file_id: raw },
  })
  const sent = vendor.calls.length
  for (const id of [input.id, raw]) await expect(edit(bob(), id)).rejects.toMatchObject(unknown)
  const responses = (more: object) => ['/responses', { ...ask, ...more }] as const
  const ofUser = (part: object) => [{ role: 'user', content: [part] }]
  const chat = (more: object) => ['/chat/completions', { model: 'gpt-5', ...more }] as const
  const keys: readonly (readonly [string, object])[] = [
    responses({ Previous_Response_Id: 'resp_one1' }),
    responses({ CONVERSATION: 'conv_one1' }),
    responses({ Input: [{ type: 'item_reference', id: 'msg_one1' }] }),
    responses({ input: [{ type: 'item_reference', ID: 'msg_one1' }] }),
    responses({ input: ofUser({ type: 'input_file', File_Id: raw }) }),
    responses({ input: ofUser({ type: 'input_file', 'f\u0131le_\u0131d': raw, FILE_ID: raw }) }),
    responses({ tools: [{ type: 'code_interpreter', Container: 'cntr_one1' }] }),
    responses({ tools: [{ type: 'shell', Environment: { container_id: 'cntr_one1' } }] }),
    chat({ messages: ofUser({ type: 'file', file: { File_ID: raw } }) }),
    chat({ messages: [{ role: 'assistant', Audio: { id: 'audio_one1' } }] }),
    ['/images/edits', { model: 'm', prompt: 'x', images: [{ FILE_ID: raw }] }],
    ['/batches', { Input_File_Id: raw, endpoint: '/v1/responses', completion_window: '24h' }],
  ]
  for (const [path, body] of keys) {
    await expect(bob().post(path, { body }), JSON.stringify(body)).rejects.toMatchObject(
      refused('the key "'),
    )
  }
  const ofAccount: readonly (readonly [string, object])[] = [
    responses({ tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }),
    chat({ messages: [], audio: { voice: { id: 'voice_1' } }, modalities: ['audio'] }),
    ['/audio/speech', { model: 'tts', input: 'Hello', voice: { id: 'voice_1' } }],
  ]
  for (const [path, body] of ofAccount) {
    await expect(bob().post(path, { body }), JSON.stringify(body)).rejects.toMatchObject(
      refused('ids of the provider are not accepted from clients'),
    )
  }
  expect(vendor.calls).toHaveLength(sent)
  const parameters = { type: 'object', properties: { ID: {}, File_Id: {}, Container: {} } }
  await client.responses.create({
    ...ask,
    tools: [{ type: 'function', name: 'f', parameters, strict: false }],
    metadata: { Id: '1', Conversation: 'x' },
  })
})
