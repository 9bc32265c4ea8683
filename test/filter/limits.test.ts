/** Rate limits, matches and header changes of the filter in a real Envoy with several workers. */
import { expect, it } from 'vitest'
import { startEnvoy } from '../support/envoy.ts'
import { useFixture } from '../support/fixture.ts'
import { send } from '../support/http-client.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream } from '../support/upstream.ts'
import { manifestsFor } from './manifests.ts'

const headerModifiers = {
  request: { set: [{ name: 'x-set', value: 'filter' }], remove: ['x-gone'] },
  response: { add: [{ name: 'x-answered', value: 'yes' }] },
}

const limits = (local: readonly object[]) => manifestsFor({ traffic: { rateLimit: { local } } })

const answer = {
  choices: [{ index: 0, message: { content: 'hello' } }],
  usage: { prompt_tokens: 60, completion_tokens: 40 },
}

describeWithParts(['envoy'], 'limits of the filter', () => {
  const vendor = useFixture(() =>
    startUpstream('vendor', (_, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(answer))
    }),
  )
  const envoy = useFixture(() =>
    startEnvoy({
      manifests: limits([{ requests: 50, unit: 'Hours', burst: 10 }]),
      upstream: vendor.port,
      concurrency: 2,
    }),
  )
  /** Each request has a connection of its own: connections of an earlier configuration keep it. */
  const ask = (path = '/v1/chat/completions', headers: Record<string, string> = {}) =>
    send(Number(new URL(envoy.base).port), {
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"messages":[]}',
    })

  it('admits no more requests on two workers than the bucket has', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask()))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(60)
    expect(statuses.filter((status) => status === 429)).toHaveLength(140)
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.headers['x-ratelimit-limit']).toBe('60')
    expect(refused?.headers['x-ratelimit-remaining']).toBe('0')
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(60)
  })

  it('keeps the count of a limit when the configuration changes', async () => {
    const local = [{ requests: 50, unit: 'Hours', burst: 10 }]
    await envoy.reconfigure(manifestsFor({ traffic: { rateLimit: { local }, headerModifiers } }))
    const { status, headers } = await ask()
    expect([status, headers['x-answered']]).toEqual([429, 'yes'])
  })

  it('refuses requests once answers have used the tokens', async () => {
    await envoy.reconfigure(limits([{ tokens: 250, unit: 'Hours' }]))
    const statuses: number[] = []
    for (let at = 0; at < 5; at++) statuses.push((await ask()).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  })

  it('changes headers and applies only to requests that match', async () => {
    const headers = [{ name: 'x-team', value: 'a' }]
    const matches = [{ path: { type: 'PathPrefix', value: '/v1' }, headers }]
    await envoy.reconfigure(manifestsFor({ traffic: { headerModifiers }, matches }))
    const matched = await ask('/v1/chat/completions', { 'x-team': 'a', 'x-gone': '1' })
    expect(matched.headers['x-answered']).toBe('yes')
    const sent = vendor.received.at(-1)?.headers
    expect([sent?.['x-set'], sent?.['x-gone']]).toEqual(['filter', undefined])
    expect((await ask('/v1/chat/completions')).headers['x-answered']).toBeUndefined()
    expect((await ask('/v11', { 'x-team': 'a' })).headers['x-answered']).toBeUndefined()
  })

  it('applies to paths that an upstream may read as one that matches', async () => {
    const matches = [{ path: { type: 'PathPrefix', value: '/v1' } }]
    await envoy.reconfigure(manifestsFor({ traffic: { headerModifiers }, matches }))
    for (const path of ['/%76%31/x', '/V1/x', '//v1/x', '/v1;a=b/x', '/%2576%31/x', '/\\v1/x']) {
      expect((await ask(path)).headers['x-answered'], path).toBe('yes')
    }
    expect((await ask('/a/../v1/x')).status).toBe(400)
    expect((await ask('/a/%2e%2e/v1/x')).status).toBe(400)
    expect((await ask('/v2/%20x')).headers['x-answered']).toBeUndefined()
  })

  it('refuses a path that leads to different rules if it is read differently', async () => {
    const matches = ['/v1', '/v1/chat'].map((value) => ({ path: { type: 'PathPrefix', value } }))
    await envoy.reconfigure(manifestsFor({ traffic: { headerModifiers }, matches }))
    expect((await ask('/v1/%63hat')).status).toBe(400)
    expect((await ask('/v1/chat')).status).toBe(200)
    expect((await ask('/v1/a%20b')).status).toBe(200)
  })
})
