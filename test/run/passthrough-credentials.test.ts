/** Credentials of clients on their way to model providers: removed, unless `passthrough` keeps the vendor's own. */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI, { AzureOpenAI } from 'openai'
import { describe, expect, it } from 'vitest'
import { failsA } from '../support/vendors/vendor-a.ts'
import {
  canary,
  claude,
  fleet,
  messages,
  post,
  query,
  seen,
  shown,
} from './client-credentials-rig.ts'

describe('credentials with passthrough', () => {
  it('are sent to the vendor of each SDK', async () => {
    const options = { apiKey: 'key-of-the-client', maxRetries: 0 }
    const openai = new OpenAI({ ...options, baseURL: `${fleet.base('pass-a')}/v1` })
    await openai.chat.completions.create({ model: 'gpt-4o', messages })
    expect(shown('a')).toEqual({ authorization: 'Bearer key-of-the-client' })
    const azure = new AzureOpenAI({
      ...options,
      baseURL: `${fleet.base('pass-b')}/openai`,
      apiVersion: '2024-10-21',
    })
    await azure.chat.completions.create({ model: 'gpt-4o', messages })
    expect(shown('b')).toEqual({ 'api-key': 'key-of-the-client' })
    const anthropic = new Anthropic({ ...options, baseURL: fleet.base('pass-c') })
    await anthropic.messages.create({ model: 'claude-sonnet-4-0', max_tokens: 5, messages })
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-the-client' })
    const gemini = new GoogleGenAI({
      apiKey: 'key-of-the-client',
      httpOptions: { baseUrl: fleet.base('raw-pass-d') },
    })
    await gemini.models.generateContent({ model: 'gemini-2.5-flash', contents: 'Hello' })
    expect(shown('d')).toEqual({ 'x-goog-api-key': 'key-of-the-client' })
  })

  it.each([
    ['a', 'gpt-4o', { authorization: `Bearer ${canary}-bearer` }],
    ['b', 'gpt-4o', { 'api-key': `${canary}-b` }],
    ['c', 'claude-sonnet-4-0', { 'x-api-key': `${canary}-c` }],
    ['d', 'gemini-2.5-flash', { 'x-goog-api-key': `${canary}-d` }],
    ['e', 'claude-sonnet-4-0', { authorization: `Bearer ${canary}-bearer` }],
    ['f', claude, { authorization: `Bearer ${canary}-bearer` }],
  ] as const)('are sent to %s only in its own place', async (letter, model, own) => {
    await post(`pass-${letter}`, `/v1/chat/completions?${query}`, model)
    expect(shown(letter)).toEqual(own)
    const [value = ''] = Object.values(own)
    expect(seen(letter).replaceAll(value, '')).not.toContain(canary)
  })

  it('are moved from the query to the header of the vendor', async () => {
    await post('raw-pass-d', '/v1beta/models?key=key-in-query&x=1', 'm', {})
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models?x=1')
    expect(shown('d')).toEqual({ 'x-goog-api-key': 'key-in-query' })
  })

  it('are moved from a bearer token to the place of the only vendor of the backend', async () => {
    await post('pass-c', '/v1/chat/completions', 'claude-sonnet-4-0', {
      authorization: 'Bearer key-of-the-client',
    })
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-the-client' })
  })

  it('are not sent to another vendor if the first one fails', async () => {
    const headers = { authorization: 'Bearer key-of-a', 'x-api-key': 'key-of-c' }
    fleet.vendors.a.answer = failsA(503, 'out of order')
    fleet.vendors.c.answer = failsA(503, 'out of order')
    await post('failover', '/v1/chat/completions', 'm', headers)
    expect(shown('a')).toEqual({ authorization: 'Bearer key-of-a' })
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-c' })
    expect(shown('d')).toEqual({})
  })

  it('follow filters of the backendRef at every provider', async () => {
    fleet.vendors.a.answer = failsA(503, 'out of order')
    await post('edited', '/v1/chat/completions', 'claude-sonnet-4-0', {})
    expect(fleet.lastCall('a')?.headers['x-of-the-backend']).toBe('yes')
    expect(fleet.lastCall('c')?.headers['x-of-the-backend']).toBe('yes')
  })

  it('include a verified key, in the place where the vendor expects it', async () => {
    await post('verified', '/v1/chat/completions', 'claude-sonnet-4-0', {
      'api-key': 'gateway-client-key',
    })
    expect(shown('c')).toEqual({ 'x-api-key': 'gateway-client-key' })
  })
})
