/** Credentials of clients on their way to model providers: removed, unless `passthrough` keeps the vendor's own. */
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime'
import { describe, expect, it } from 'vitest'
import { send } from '../support/http-client.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  canary,
  claude,
  collector,
  everywhere,
  fleet,
  limits,
  port,
  post,
  query,
  seen,
  shadow,
  shown,
  webhook,
} from './client-credentials-rig.ts'

describe('a request to a model provider', () => {
  it.each([
    ['a', 'gpt-4o', { authorization: 'Bearer gateway-key' }],
    ['b', 'gpt-4o', { authorization: 'Bearer gateway-key', 'api-key': 'gateway-key' }],
    ['c', 'claude-sonnet-4-0', { 'x-api-key': 'gateway-key' }],
    ['d', 'gemini-2.5-flash', { authorization: 'Bearer gateway-key' }],
    ['e', 'claude-sonnet-4-0', { authorization: 'Bearer gateway-key' }],
  ] as const)('carries only the credential of the gateway to %s', async (letter, model, own) => {
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses']) {
      await post(letter, `${path}?${query}&kept=1`, model)
      expect(shown(letter)).toEqual(own)
    }
    await post(`raw-${letter}`, `/any/path?kept=1&${query}`, model)
    expect(shown(letter)).toEqual(own)
    expect(fleet.lastCall(letter)?.path).toBe('/any/path?kept=1')
    expect(seen(letter)).not.toContain(canary)
  })

  it('is signed without anything that a client has signed', async () => {
    await post('f', `/v1/chat/completions?${query}`, claude)
    await post('raw-f', `/model/x/converse?${query}`)
    const bedrock = new BedrockRuntimeClient({
      endpoint: fleet.base('raw-f'),
      region: 'us-west-2',
      credentials: { accessKeyId: canary, secretAccessKey: 's', sessionToken: canary },
      maxAttempts: 1,
    })
    const content = [{ text: 'Hello' }]
    const request = { modelId: claude, messages: [{ role: 'user' as const, content }] }
    const answer = await bedrock.send(new ConverseCommand(request))
    expect(answer.output?.message?.content).toEqual([{ text: 'Hello from F' }])
    bedrock.destroy()
    expect(fleet.lastCall('f')?.headers['x-amz-security-token']).toBe('session-token')
    expect(seen('f')).not.toContain(canary)
  })

  it('carries no credential if the gateway has none', async () => {
    await post('no-auth', `/v1/chat/completions?${query}`)
    expect(seen('a')).not.toContain(canary)
    expect(shown('a')).toEqual({})
  })

  it('keeps a credential that a filter or a policy of the route has set', async () => {
    await post('set', '/v1/messages', 'claude-sonnet-4-0')
    expect(shown('c')).toEqual({ 'x-api-key': 'key-of-the-route' })
    await post('set-policy', '/v1/chat/completions')
    expect(shown('a')).toEqual({ authorization: 'Bearer key-of-the-policy' })
    expect(seen('a') + seen('c')).not.toContain(canary)
  })

  it('shows no credential of the client to mirrors', async () => {
    await post('mirrored', `/v1/chat/completions?${query}&kept=1`)
    const [copy] = await waitFor('the mirror', () => shadow.received.length > 0 && shadow.received)
    expect(copy?.path).toContain('kept=1')
    expect(JSON.stringify({ ...copy, body: '' })).not.toContain(canary)
  })

  it('shows webhooks the headers that forwardHeaderMatches selects, and no others', async () => {
    await post('guarded', '/v1/chat/completions', 'm', { ...everywhere, 'x-tenant': 'one' })
    const { headers } = webhook.calls.at(-1) ?? { headers: {} }
    expect(headers).toMatchObject({ 'x-api-key': `${canary}-c`, 'x-tenant': 'one' })
    expect(JSON.stringify({ ...headers, 'x-api-key': '' })).not.toContain(canary)
    expect(seen('a')).not.toContain(canary)
  })

  it("is counted by rate limits that read the client's own credential", async () => {
    await post('limited', '/v1/chat/completions')
    const asked = await waitFor('check and charge', () => limits.asked.length > 1 && limits.asked)
    const entries = asked.map(({ descriptors }) =>
      descriptors[0]?.entries.map(({ value }) => value),
    )
    const expected = [`${canary}-c`, '/v1/chat/completions']
    expect(entries).toEqual([expected, expected])
    expect(seen('a')).not.toContain(canary)
  })
})

describe('access logs and traces of requests', () => {
  it('contain no credential of a client, whether the request is served or refused', async () => {
    const log = () => fleet.running.stdout
    await post('a', `/v1/chat/completions?mark=served&${query}`)
    await post('verified', `/v1/chat/completions?mark=refused&${query}`)
    await send(port(), { path: `/nowhere?mark=unrouted&${query}` })
    await waitFor('the log', () =>
      ['served', 'refused', 'unrouted'].every((mark) => log().includes(`mark=${mark}`)),
    )
    expect(log()).toContain('mark=refused&key=<redacted>')
    expect(log() + fleet.running.stderr).not.toContain(canary)
    const spans = () => collector.received.map(({ body }) => body).join('')
    await waitFor('the spans', () => spans().includes('mark=refused'))
    expect(spans()).not.toContain(canary)
  })
})
