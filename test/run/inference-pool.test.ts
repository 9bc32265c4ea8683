import { describe, expect, it } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import {
  a,
  ask,
  b,
  chat,
  down,
  echo,
  given,
  line,
  pickers,
  upstreams,
} from './inference-pool-rig.ts'

const unreachable = () => `127.0.0.1:${down}`
const lastAsked = () => pickers.plain.asked.at(-1)

describe('endpoints that a picker names [inference.pool]', () => {
  it('[inference.pool] receive the request, named by header or metadata', async () => {
    for (const [by, endpoint, from] of [
      [undefined, a(), 'a'],
      ['header', b(), 'b'],
      ['metadata', b(), 'b'],
    ] as const) {
      given.pick = () => ({ endpoints: endpoint, ...(by && { by }) })
      const response = await ask('model')
      expect(response.status, response.body).toBe(200)
      expect(response.headers['x-from']).toBe(from)
      expect(JSON.parse(response.body)).toMatchObject({ method: 'POST', body: chat })
    }
    expect(lastAsked()).toMatchObject({ body: chat, headers: { ':path': '/v1/chat' } })
  })

  it('[inference.pool] are asked for with requests without a body too', async () => {
    const response = await ask('model', { method: 'GET', body: undefined })
    expect(response.headers['x-from']).toBe('a')
  })

  it('[inference.pool] are chosen from a list that the picker gets, and reported back to it', async () => {
    const response = await ask('model')
    expect(lastAsked()?.subset).toContain(a())
    expect(lastAsked()?.subset).toContain(b())
    expect(lastAsked()?.subset.some((one) => one.startsWith('127.0.0.9:'))).toBe(false)
    expect(response.headers['x-served-by']).toBe(a())
  })

  it('[inference.pool] receive the body that the picker returns', async () => {
    given.pick = () => ({ endpoints: a(), body: '{"model":"large"}' })
    const response = await ask('model')
    expect(JSON.parse(response.body)).toMatchObject({ body: '{"model":"large"}' })
  })

  it('[inference.pool] cannot be set by headers of the client', async () => {
    given.pick = () => ({ endpoints: a(), by: 'metadata' })
    const headers = { 'x-gateway-destination-endpoint': b() }
    const response = await ask('model', { headers })
    expect(response.headers['x-from']).toBe('a')
    expect(lastAsked()?.headers['x-gateway-destination-endpoint']).toBeUndefined()
  })

  it('[inference.pool] are tried in turn if the first is unreachable', async () => {
    given.pick = () => ({ endpoints: `${unreachable()},${b()}` })
    const response = await ask('model')
    expect(response.headers['x-from']).toBe('b')
    expect(JSON.parse(response.body)).toMatchObject({ body: chat })
    expect(response.headers['x-served-by']).toBe(b())
  })

  it('[inference.pool] are used in turn by retries of the route', async () => {
    given.pick = () => ({ endpoints: `${a()},${b()}` })
    given.answer = (received, response) => {
      if (received.upstream === 'a') response.statusCode = 503
      echo(received, response)
    }
    const before = pickers.plain.asked.length
    const response = await ask('retried')
    expect(response).toMatchObject({ status: 200, headers: { 'x-served-by': b() } })
    expect(pickers.plain.asked.length).toBe(before + 1)
  })

  it('[inference.pool] are ignored unless they are ready endpoints of the pool', async () => {
    const foreign = `127.0.0.9:${upstreams.b.port}`
    given.pick = () => ({ endpoints: `${foreign}, ${b()}` })
    expect((await ask('model')).headers['x-from']).toBe('b')
    given.pick = () => ({ endpoints: foreign })
    expect(await ask('model')).toMatchObject({ status: 503, body: 'endpoint picker failed' })
    expect(await line('model', 'fail_closed')).toContain('ready endpoint of the pool: 127.0.0.9')
    expect((await ask('open')).status).toBe(200)
  })

  it('[inference.pool] are not asked if the picker answers the request itself', async () => {
    given.pick = () => ({ status: 429 })
    expect(await ask('model')).toMatchObject({ status: 429, body: 'refused by the picker' })
    expect(await ask('open')).toMatchObject({ status: 429 })
    await line('open', 'inference.pick=answered')
  })

  it('[inference.pool] come from the picker of the pool that the weights choose', async () => {
    const from = new Set<string>()
    await waitFor('both', async () => {
      from.add(String((await ask('weighted')).headers['x-from']))
      return from.size === 2
    })
    expect([...from].sort()).toEqual(['a', 'b'])
  })

  it('[inference.pool] work with filters and policies of route and pool', async () => {
    const response = await ask('guarded')
    expect(response.headers['x-late']).toBe('yes')
    const { headers } = JSON.parse(response.body) as { headers: Record<string, string> }
    expect(headers['x-by-rule']).toBe('yes')
    expect(headers.authorization).toBe('Bearer for-models')
    // Credentials are for the endpoint, not for the picker.
    expect(lastAsked()?.headers.authorization).toBeUndefined()
    const before = pickers.plain.asked.length
    expect((await ask('guarded', { headers: { 'x-bad': 'yes' } })).status).toBe(403)
    expect(pickers.plain.asked.length).toBe(before)
  })
})
