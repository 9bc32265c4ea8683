/** Equal requests to a model that are under way at the same time. */
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk, completes, completion, startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const a = useFixture(startVendorA)
const port = await freePort()

function cached(name: string, cache: object) {
  const at = { host: '127.0.0.1', port: a.port }
  return [
    aiBackend(name, { provider: { vendorA: {}, ...at } }, { ai: { cache } }),
    routeByPath(name),
    policy(`keys-${name}`, `HTTPRoute/${name}`, {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
    }),
  ]
}

useGateway(() => ({
  manifests: [
    gateway(port),
    secret('keys', { ann: 'key-of-ann', bob: 'key-of-bob' }),
    ...cached('own', { collapseTimeout: '1h' }),
    ...cached('brief', { collapseTimeout: '10ms' }),
    ...cached('apart', { collapseTimeout: '0s' }),
  ],
  args: ['--workers', '1'],
}))

beforeEach(() => {
  a.calls.length = 0
  a.next.length = 0
  a.answer = completes('Hello')
})

let count = 0
const newAsk = (more: object = {}) => ({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: `Question ${++count}` }],
  ...more,
})

async function post(
  name: string,
  body: object,
  { key = 'ann', ...init }: { key?: string; signal?: AbortSignal } = {},
) {
  const response = await fetch(`http://127.0.0.1:${port}/${name}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer key-of-${key}` },
    body: JSON.stringify(body),
    ...init,
  })
  const text = await response.text()
  return { status: response.status, text, cache: response.headers.get('cache-status') }
}

type Post = ReturnType<typeof post>

/** Lets the provider hold its next response until it is released. */
function holdNext(answer: typeof a.answer = completes('Hello')) {
  const { promise, resolve } = Promise.withResolvers<void>()
  a.next.push((call, response) => void promise.then(() => answer(call, response)))
  return resolve
}

/** Sends a request that the provider holds, and equal ones. */
async function flight(name: string, body: object, send: () => Post, followers = 8) {
  const leader = send()
  await waitFor('the leader at the provider', () => a.calls.length === 1)
  const others = Array.from({ length: followers }, () => post(name, body))
  // The worker has read the requests before when it answers a later one.
  await post(name, newAsk())
  return { leader, others }
}

const calls = (body: { messages: readonly { content: string }[] }) =>
  a.calls.filter(({ body: sent }) =>
    JSON.stringify(sent).includes(`"${body.messages[0]?.content}"`),
  )

describe('equal requests at the same time', () => {
  it('get one answer of the provider, and say so', async () => {
    const ask = newAsk()
    const release = holdNext()
    const { leader, others } = await flight('own', ask, () => post('own', ask))
    release()
    const first = await leader
    expect(first.cache).toBe('sluice; fwd=miss')
    const answers = await Promise.all(others)
    for (const { status, text } of answers)
      expect({ status, text }).toEqual({ status: 200, text: first.text })
    expect(answers[0]?.cache).toMatch(/^sluice; fwd=miss; collapsed; ttl=\d+$/)
    expect(calls(ask)).toHaveLength(1)
  })

  it('go on with the next one if the first one fails or its client leaves', async () => {
    const failing = newAsk()
    const fail = holdNext((_, response) => json(response, 500, { error: { message: 'broken' } }))
    const failed = await flight('own', failing, () => post('own', failing))
    fail()
    expect((await failed.leader).status).toBe(500)
    for (const one of await Promise.all(failed.others)) expect(one.status).toBe(200)
    expect(calls(failing)).toHaveLength(2)

    a.calls.length = 0
    const left = newAsk()
    holdNext()
    const leaving = new AbortController()
    const cancelled = await flight('own', left, () => post('own', left, { signal: leaving.signal }))
    leaving.abort()
    await expect(cancelled.leader).rejects.toThrow()
    for (const one of await Promise.all(cancelled.others)) expect(one.status).toBe(200)
    expect(calls(left)).toHaveLength(2)
  })

  it('wait for the answer to the next request if the body of the first answer breaks', async () => {
    for (const stream of [false, true]) {
      a.calls.length = 0
      const ask = newAsk()
      const breakNow = holdNext((_, response) => {
        // Some servers stream although the request does not ask for it.
        if (stream) {
          openStream(response)
          sendEvent(response, chunk('gpt-4o', { content: 'Half' }))
        } else {
          response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
          response.write('{"id":')
        }
        setImmediate(() => response.destroy())
      })
      const leader = post('own', ask).catch(() => undefined)
      await waitFor('the leader at the provider', () => a.calls.length === 1)
      const others = Array.from({ length: 8 }, () => post('own', ask))
      await post('own', newAsk())
      breakNow()
      await leader
      for (const one of await Promise.all(others)) expect(one.text).toContain('Hello')
      expect(calls(ask), `stream: ${stream}`).toHaveLength(2)
    }
  })

  it('all ask the provider after two failures, and after an answer that is not for them', async () => {
    const broken = newAsk()
    const ends = [500, 500].map((status) =>
      holdNext((_, response) => json(response, status, { error: { message: 'broken' } })),
    )
    const leader = post('own', broken)
    await waitFor('the leader at the provider', () => a.calls.length === 1)
    const others = Array.from({ length: 4 }, () => post('own', broken))
    ends[0]?.()
    await waitFor('the next one at the provider', () => calls(broken).length === 2)
    ends[1]?.()
    expect((await leader).status).toBe(500)
    const statuses = (await Promise.all(others)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 500)).toHaveLength(1)
    expect(statuses.filter((status) => status === 200)).toHaveLength(3)

    a.calls.length = 0
    const long = newAsk()
    const whole = completion('gpt-4o', 'Half') as { choices: object[] }
    const cut = { ...whole, choices: [{ ...whole.choices[0], finish_reason: 'length' }] }
    const cutNow = holdNext((_, response) => json(response, 200, cut))
    const unfinished = await flight('own', long, () => post('own', long), 3)
    cutNow()
    expect((await unfinished.leader).text).toContain('Half')
    for (const one of await Promise.all(unfinished.others)) expect(one.text).toContain('Hello')
  })

  it('do not wait for other clients, for streams, without end, or where that is turned off', async () => {
    const ask = newAsk()
    const release = holdNext()
    const leader = post('own', ask)
    await waitFor('the leader at the provider', () => a.calls.length === 1)
    expect((await post('own', ask, { key: 'bob' })).status).toBe(200)
    release()
    await leader
    for (const [name, body] of [
      ['own', newAsk({ stream: true })],
      ['brief', newAsk()],
      ['apart', newAsk()],
    ] as const) {
      a.calls.length = 0
      const go = holdNext()
      const held = post(name, body)
      await waitFor('the leader at the provider', () => a.calls.length === 1)
      expect((await post(name, body)).status).toBe(200)
      expect(calls(body)).toHaveLength(2)
      go()
      expect((await held).status).toBe(200)
    }
  })
})
