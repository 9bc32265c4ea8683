/** Paths of what vendors store and the gateway does not serve, because it would not know whose it is. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'

const key = { key: 'gateway-key' }
const guarded = { promptGuard: { request: [{ regex: { builtins: ['Ssn'] } }] } }
const fleet = useFleet(({ at }) => [
  reached('a', { vendorA: {}, ...at('a') }, { ai: undefined, auth: key }),
  reached('guarded', { vendorA: {}, ...at('a') }, { ai: guarded, auth: key }),
  reached('c', { vendorC: {}, ...at('c') }, { ai: undefined, auth: key }),
])
beforeEach(() => fleet.forget())

const refusal = { status: 400, message: expect.stringContaining('no type reads its format') }
const clients = () =>
  ['a', 'guarded'].map(
    (name) => new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'k', maxRetries: 0 }),
  )
const anthropic = () => new Anthropic({ baseURL: fleet.base('c'), apiKey: 'k', maxRetries: 0 })

const ofOpenAi: Readonly<Record<string, (client: OpenAI) => Promise<unknown>>> = {
  'a stored completion': (client) => client.chat.completions.retrieve('chatcmpl-1'),
  'a search in a store': (client) => client.vectorStores.search('vs_1', { query: '123-45-6789' }),
}

describe('what vendors keep', () => {
  it.each(Object.entries(ofOpenAi))('is not served if it is %s', async (_, ask) => {
    for (const client of clients()) {
      await expect(ask(client)).rejects.toMatchObject(refusal)
    }
    expect(fleet.lastCall('a')).toBeUndefined()
  })

  it('is not served to clients of Messages, whose errors it has', async () => {
    for (const ask of [
      () => anthropic().get('/v1/skills/skill_1'),
      () => anthropic().post('/v1/agents', { body: {} }),
      () => anthropic().get('/v1/sessions/s_1'),
      () => anthropic().get('/v1/messages/batches/msgbatch_1/other'),
    ]) {
      await expect(ask()).rejects.toMatchObject({ ...refusal, error: { type: 'error' } })
    }
    expect(fleet.lastCall('c')).toBeUndefined()
  })

  it.each([
    '/v1beta/cachedContents/x',
    '/v1beta/files/x',
    '/v1beta/batches/x',
    '/model-invocation-job/x',
    '/v1/responses/resp_1/unknown',
    '/v1/files/a.b',
    '/V1//Files/%66ile-1/content',
  ])('is not served at %s', async (path) => {
    for (const method of ['GET', 'DELETE', 'POST']) {
      const response = await fetch(`${fleet.base('guarded')}${path}`, { method })
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('no type reads its format'),
      ])
    }
  })
})
