/** A provider that answers 200 and then reports an error fails like one that answers with an error status. */
import type { ServerResponse } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { policy } from '../support/manifests.ts'
import { reachedBackend, routes, useFleet } from '../support/vendors/fleet.ts'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'
import { completes } from '../support/vendors/vendor-a.ts'
import { frame, openFrames } from '../support/vendors/vendor-f.ts'
import { waitFor } from '../support/wait-for.ts'

const project = { projectId: 'my-project', region: 'us-central1' }
const body = {
  model: 'anthropic.claude-sonnet-4-v1:0',
  stream: true,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
}
type Letter = 'a' | 'c' | 'd' | 'e' | 'f'
type Write = (response: ServerResponse) => void

const event =
  (data: object | string, name?: string): Write =>
  (response) => {
    openStream(response)
    sendEvent(response, data, name)
    response.end()
  }
/** A stream without events. */
const without =
  (end: Write): Write =>
  (response) => {
    openStream(response)
    end(response)
  }
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
const unavailable = { error: { code: 503, message: 'Overloaded', status: 'UNAVAILABLE' } }
const exception: Write = (response) => {
  openFrames(response)
  response.end(frame('throttlingException', { message: 'slow down' }, 'exception'))
}

const chat = '/v1/chat/completions'
/** The name of the backend, its first provider, the client's path, and the beginning of the stream. */
const cases: readonly (readonly [string, Letter, string, Write])[] = [
  ['a-error', 'a', chat, event({ error: { message: 'busy', type: 'server_error', code: null } })],
  [
    'a-choice',
    'a',
    chat,
    event({
      id: 'gen',
      model: 'm',
      choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
      error: { code: 502, message: 'Provider disconnected' },
    }),
  ],
  ['a-html', 'a', chat, event('<html>502 Bad Gateway</html>')],
  ['a-empty', 'a', chat, without((response) => response.end())],
  [
    'a-json',
    'a',
    chat,
    (response) => {
      openStream(response)
      response.end(JSON.stringify({ error: { message: 'busy' } }))
    },
  ],
  ['a-cut', 'a', chat, without((response) => response.destroy())],
  [
    'a-comment',
    'a',
    chat,
    (response) => {
      openStream(response)
      response.write(': PROCESSING\n\n')
      sendEvent(response, { error: { code: 429, message: 'limited' } })
      response.end()
    },
  ],
  [
    'a-responses',
    'a',
    '/v1/responses',
    event({ type: 'error', code: 'server_error', message: 'x' }, 'error'),
  ],
  [
    'a-failed',
    'a',
    '/v1/responses',
    event(
      {
        type: 'response.failed',
        response: { id: 'r', status: 'failed', error: { code: 'server_error', message: 'x' } },
      },
      'response.failed',
    ),
  ],
  ['c-native', 'c', '/v1/messages', event(overloaded, 'error')],
  ['c-translated', 'c', chat, event(overloaded, 'error')],
  [
    'c-ping',
    'c',
    '/v1/messages',
    (response) => {
      openStream(response)
      sendEvent(response, { type: 'ping' }, 'ping')
      sendEvent(response, overloaded, 'error')
      response.end()
    },
  ],
  ['d', 'd', chat, event(unavailable)],
  ['d-list', 'd', chat, event([unavailable])],
  ['e', 'e', '/v1/messages', event(overloaded, 'error')],
  ['f', 'f', chat, exception],
  ['f-messages', 'f', '/v1/messages', exception],
]

const masks = { promptGuard: { response: [{ regex: { builtins: ['Ssn'] } }] } }

const fleet = useFleet(
  ({ at, region }) => {
    const providers: Record<Letter, object> = {
      a: { vendorA: {}, ...at('a') },
      c: { vendorC: {}, ...at('c') },
      d: { vendorD: { model: 'gemini-2.5-flash' }, ...at('d') },
      e: { vendorE: project, ...at('e') },
      f: { vendorF: { region }, ...at('f') },
    }
    const groups = (first: Letter) => ({
      groups: [
        { providers: [{ name: 'first', ...providers[first] }] },
        { providers: [{ name: 'second', ...providers.a }] },
      ],
    })
    return [
      ...cases.map(([name, first]) => reachedBackend(name, groups(first))),
      ...['begun', 'all', 'invalid', 'whole', 'slow', 'logged'].map((name) =>
        reachedBackend(name, groups('c')),
      ),
      reachedBackend('masked', groups('c'), { ai: { routes, ...masks } }),
      reachedBackend('again', { provider: providers.c }),
      [policy('again', 'HTTPRoute/again', { traffic: { retry: { codes: [529], attempts: 1 } } })],
    ]
  },
  { LOG_FORMAT: 'json' },
)

beforeEach(() => {
  fleet.forget()
  fleet.vendors.a.answer = completes('from the second')
})

const ask = (name: string, path: string, more: object = {}) =>
  fetch(`${fleet.base(name)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...body,
      ...(path === '/v1/responses' && {
        messages: undefined,
        max_tokens: undefined,
        input: 'Hello',
      }),
      ...more,
    }),
  })
const textOf = async (...request: Parameters<typeof ask>): Promise<string> =>
  (await ask(...request)).text()
const callsOf = (...vendors: readonly Letter[]): number =>
  [...new Set(vendors)].reduce((sum, letter) => sum + fleet.vendors[letter].calls.length, 0)

describe('an error in place of the first event of a stream', () => {
  it.each(cases)(
    'sends the request to the next provider and ejects the first (%s)',
    async (name, first, path, write) => {
      fleet.vendors[first].next.push((_, response) => write(response))
      const text = await textOf(name, path)
      expect(text).toContain('from the second')
      expect(text).not.toContain('rror')
      expect(callsOf(first, 'a')).toBe(2)
      expect(await textOf(name, path)).toContain('from the second')
      expect(callsOf(first, 'a')).toBe(3)
    },
  )

  it('is the answer with its status if all providers fail', async () => {
    fleet.vendors.c.next.push((_, response) => event(overloaded, 'error')(response))
    fleet.vendors.a.next.push((_, response) =>
      event({ error: { message: 'all are busy', code: 503 } })(response),
    )
    const response = await ask('all', '/v1/messages')
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { message: 'all are busy' },
    })
  })

  it('is relayed if the request is at fault, so that another provider would refuse it too', async () => {
    const error = { type: 'invalid_request_error', message: 'prompt is too long' }
    fleet.vendors.c.next.push((_, response) => event({ type: 'error', error }, 'error')(response))
    expect(await textOf('invalid', '/v1/messages')).toContain('prompt is too long')
    expect(fleet.vendors.a.calls).toEqual([])
  })

  it('is retried by a retry policy that names its status', async () => {
    fleet.vendors.c.next.push((_, response) => event(overloaded, 'error')(response))
    const text = await textOf('again', '/v1/messages')
    expect(text).toContain('message_stop')
    expect(text).not.toContain('verloaded')
    expect(fleet.vendors.c.calls).toHaveLength(2)
  })

  it('fails over below guards that mask', async () => {
    fleet.vendors.c.next.push((_, response) => event(overloaded, 'error')(response))
    expect(await textOf('masked', '/v1/messages')).toContain('from the second')
  })
})

it('an error in place of a whole answer with status 200 sends the request to the next provider', async () => {
  fleet.vendors.c.next.push((_, response) => json(response, 200, overloaded))
  expect(await textOf('whole', '/v1/messages', { stream: false })).toContain('from the second')
  expect(await textOf('whole', '/v1/messages', { stream: false })).toContain('from the second')
  expect(fleet.vendors.c.calls).toHaveLength(1)
})

const begin = (response: ServerResponse): void => {
  openStream(response)
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [] }
  sendEvent(
    response,
    {
      type: 'message_start',
      message: { ...message, usage: { input_tokens: 1, output_tokens: 1 } },
    },
    'message_start',
  )
}

it('a stream that fails after the client got a part of it is not sent again', async () => {
  fleet.vendors.c.next.push((_, response) => {
    begin(response)
    sendEvent(response, overloaded, 'error')
    response.end()
  })
  const text = await textOf('begun', '/v1/messages')
  expect(text).toContain('message_start')
  expect(text).toContain('Overloaded')
  expect(fleet.vendors.a.calls).toEqual([])
})

it('the client gets the first event before the second one is sent', async () => {
  let finish: (() => void) | undefined
  fleet.vendors.c.next.push((_, response) => {
    begin(response)
    finish = () => {
      sendEvent(response, { type: 'message_stop' }, 'message_stop')
      response.end()
    }
  })
  const response = await ask('slow', '/v1/messages')
  const reader = response.body?.getReader()
  const first = await reader?.read()
  expect(Buffer.from(first?.value ?? []).toString()).toContain('message_start')
  finish?.()
  const second = await reader?.read()
  expect(Buffer.from(second?.value ?? []).toString()).toContain('message_stop')
})

it('the access log names the provider of each attempt and skipped providers', async () => {
  fleet.vendors.c.next.push((_, response) => event(overloaded, 'error')(response))
  await textOf('logged', '/v1/messages')
  await textOf('logged', '/v1/messages')
  const lines = await waitFor('two lines', () => {
    const found = fleet.running.stdout.split('\n').filter((line) => line.includes('default/logged'))
    return found.length >= 2 && found
  })
  expect(lines[0]).toContain(
    '"model.provider":"second","model.group":2,"model.failed":"first: status 529"',
  )
  expect(lines[1]).toContain('"model.provider":"second","model.group":2,"model.skipped":"first"')
})
