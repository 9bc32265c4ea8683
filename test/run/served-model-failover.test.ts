/** After which failures a virtual model, or a backend with groups, tries the next provider. */
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { aiBackend, routeByPath, servedModel } from '../support/manifests.ts'
import {
  type Answer,
  json,
  openStream,
  sendEvent,
  type VendorCall,
} from '../support/vendors/vendor.ts'
import { chunk, failsA } from '../support/vendors/vendor-a.ts'
import { hello, urlOf, useServedModels } from './served-models-rig.ts'

type Fields = Readonly<Record<string, unknown>>

/** A virtual model that tries the model of A, and then that of B or C. */
const pair = (name: string, second: string, conditions: Fields) =>
  servedModel(name, {
    virtualModel: {
      failover: {
        targets: [
          { modelRef: { name: 'first' }, priority: 0, model: `${name}-a` },
          { modelRef: { name: second }, priority: 1, model: `${name}-b` },
        ],
        conditions,
      },
    },
  })

const models = await useServedModels(({ a, b, c }) => {
  const openai = (name: string, model: string, port: number) =>
    servedModel(name, {
      match: { model },
      visibility: 'Internal',
      provider: 'OpenAI',
      baseURL: `http://127.0.0.1:${port}/v1`,
    })
  const at = (port: number) => ({ vendorA: {}, host: '127.0.0.1', port })
  return [
    openai('first', 'first-*', a.port),
    openai('second', 'second-*', b.port),
    // The same address as the first one, with another model.
    openai('sibling', 'sibling-*', a.port),
    servedModel('other-vendor', {
      match: { model: 'other-*' },
      visibility: 'Internal',
      provider: 'Anthropic',
      baseURL: urlOf(c),
    }),
    pair('usual', 'second', {}),
    pair('codes', 'second', { statuses: [418], errorCodes: ['insufficient_quota'] }),
    pair('named', 'second', { statuses: [500], errorCodes: ['boom'] }),
    pair('filtered', 'other-vendor', { contentFilter: true }),
    pair('filtered-twice', 'second', { contentFilter: true }),
    pair('patient', 'second', { retryAfterOver: '30s' }),
    pair('late', 'second', { firstTokenTimeout: '300ms' }),
    pair('silent', 'second', { firstTokenTimeout: '300ms' }),
    pair('overloaded', 'second', {}),
    pair('always-down', 'second', {}),
    servedModel('lost', {
      visibility: 'Internal',
      provider: 'OpenAI',
      baseURL: 'http://nobody.invalid/v1',
    }),
    servedModel('unresolved', {
      virtualModel: {
        failover: {
          targets: [
            { modelRef: { name: 'lost' }, priority: 0 },
            { modelRef: { name: 'second' }, priority: 1, model: 'found' },
          ],
        },
      },
    }),
    pair('idle', 'second', { idleTimeout: '300ms' }),
    pair('denied', 'second', { statuses: [401, 403] }),
    pair('denied-sibling', 'sibling', { statuses: [401, 403] }),
    servedModel('sized', {
      virtualModel: {
        failover: {
          targets: [
            { modelRef: { name: 'first' }, priority: 0, model: 'gpt-4o' },
            { modelRef: { name: 'second' }, priority: 1, model: 'gpt-4' },
            { modelRef: { name: 'sibling' }, priority: 2, model: 'gpt-4.1' },
          ],
          conditions: { contextExceeded: true },
        },
      },
    }),
    servedModel('small', {
      virtualModel: {
        failover: {
          targets: [
            { modelRef: { name: 'first' }, priority: 0, model: 'gpt-4.1' },
            { modelRef: { name: 'second' }, priority: 1, model: 'gpt-4' },
          ],
          conditions: { contextExceeded: true },
        },
      },
    }),
    aiBackend('groups', {
      groups: [
        { providers: [{ name: 'one', ...at(a.port) }] },
        { providers: [{ name: 'two', ...at(b.port) }] },
      ],
      failover: { errorCodes: ['insufficient_quota'], firstTokenTimeout: '300ms' },
    }),
    routeByPath('groups'),
  ]
})
const { a, b, c } = models

const errorWith = (code: string, message = 'no') => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})
const answers =
  (status: number, body: object, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    json(response, status, body)
  }
const streamed = async (model: string, path?: string) => {
  const stream = models.openai(path).chat.completions.stream({ model, messages: hello })
  return (await stream.finalChatCompletion()).choices[0]?.message.content
}
/** Opens a stream, and sends pings or nothing at all. */
const stalls =
  (pings: boolean): Answer =>
  (_, response) => {
    openStream(response)
    if (!pings) return
    const timer = setInterval(() => response.write(': ping\n\n'), 50)
    response.on('close', () => clearInterval(timer))
  }
const tooLong = errorWith(
  'context_length_exceeded',
  "This model's maximum context length is 128000 tokens.",
)

describe('[VirtualModel.failover] [FailoverVirtualModel.targets] [FailoverModelTarget.priority] a virtual model with priorities', () => {
  it('tries the next one after limits, overload and failures, but not after a wrong request', async () => {
    for (const status of [429, 500, 503, 529, 408]) {
      a.next.push(failsA(status, 'busy'))
      expect(await models.textOf('usual')).toBe('from B')
    }
    expect(new Set(models.sentTo(b))).toEqual(new Set(['usual-b']))
    a.next.push(failsA(400, 'wrong'))
    b.next.push(failsA(400, 'wrong'))
    await expect(models.textOf('usual')).rejects.toMatchObject({ status: 400 })
  })
})

describe('[FailoverVirtualModel.conditions] conditions of a virtual model', () => {
  it('[FailoverConditions.statuses] [FailoverConditions.errorCodes] name statuses, codes and types of errors', async () => {
    a.next.push(answers(418, errorWith('teapot')))
    expect(await models.textOf('codes')).toBe('from B')
    a.next.push(answers(403, errorWith('insufficient_quota')))
    expect(await models.textOf('codes')).toBe('from B')
    a.next.push(answers(403, errorWith('other')))
    await expect(models.textOf('codes')).rejects.toMatchObject({ status: 403 })
    // 500 is not among the statuses.
    a.next.push(failsA(500, 'broken'))
    await expect(models.textOf('codes')).rejects.toMatchObject({ status: 500 })
  })

  it('[FailoverConditions.contextExceeded] skip models whose context is not larger', async () => {
    a.next.push(answers(400, tooLong))
    expect(await models.textOf('sized')).toBe('from A')
    expect(models.sentTo(a)).toEqual(['gpt-4o', 'gpt-4.1'])
    expect(models.sentTo(b)).toEqual([])
    a.next.push(answers(400, tooLong))
    await expect(models.textOf('small')).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    })
    expect(models.sentTo(b)).toEqual([])
  })

  it('[FailoverConditions.contentFilter] send what a filter refuses to another vendor only', async () => {
    const refused = errorWith('content_filter', 'The response was filtered.')
    a.next.push(answers(400, refused))
    expect(await models.textOf('filtered')).toBe('from C')
    a.next.push(answers(400, refused))
    await expect(models.textOf('filtered-twice')).rejects.toMatchObject({ status: 400 })
    expect(b.calls).toEqual([])
    // An answer that ends because of the filter.
    a.next.push(({ body }: VendorCall, response: ServerResponse) =>
      json(response, 200, {
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: body.model,
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: '' },
            finish_reason: 'content_filter',
          },
        ],
      }),
    )
    expect(await models.textOf('filtered')).toBe('from C')
  })

  it('[FailoverConditions.retryAfterOver] return a limit that ends soon to the client', async () => {
    a.next.push(failsA(429, 'slow', { 'retry-after': '2' }))
    await expect(models.textOf('patient')).rejects.toMatchObject({ status: 429 })
    expect(b.calls).toEqual([])
    expect(await models.textOf('patient')).toBe('from B')
  })

  it('[FailoverConditions.firstTokenTimeout] [FailoverConditions.idleTimeout] replace a stream that begins too late, and no other', async () => {
    a.next.push(stalls(true))
    expect(await streamed('late')).toBe('from B')
    a.next.push(() => undefined)
    expect(await streamed('silent')).toBe('from B')
    b.calls.length = 0
    a.next.push(stalls(false))
    expect(await streamed('idle')).toBe('from B')
    expect(b.calls).toHaveLength(1)
  })

  it('let a stream go on that has begun, however late the rest comes', async () => {
    const slow: Answer = ({ body }, response) => {
      openStream(response)
      sendEvent(response, chunk(String(body.model), { role: 'assistant', content: 'slow' }))
      setTimeout(() => {
        sendEvent(response, chunk(String(body.model), {}, 'stop'))
        sendEvent(response, '[DONE]')
        response.end()
      }, 700)
    }
    for (const name of ['idle', 'late']) {
      // The provider may still be ejected.
      b.next.push(slow)
      a.next.push(slow)
      expect(await streamed(name)).toBe('slow')
      a.next.length = 0
      b.next.length = 0
    }
  })

  it('send a refused credential to another address only', async () => {
    a.next.push(failsA(401, 'no key'))
    expect(await models.textOf('denied')).toBe('from B')
    a.next.push(failsA(401, 'no key'))
    await expect(models.textOf('denied-sibling')).rejects.toMatchObject({ status: 401 })
    expect(models.sentTo(a).at(-1)).toBe('denied-sibling-a')
  })

  it('count an error in the first event of a stream, but none after it', async () => {
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, tooLong)
      response.end()
    })
    expect(await streamed('sized')).toBe('from A')
    a.next.push(({ body }, response) => {
      openStream(response)
      sendEvent(response, chunk(String(body.model), { role: 'assistant', content: 'half' }))
      sendEvent(response, tooLong)
      response.end()
    })
    await expect(streamed('sized')).rejects.toThrow(/maximum context length/)
  })
})

it('[FailoverConditions.errorCodes] name errors with status 200, whole and as the first event of a stream', async () => {
  const boom = { error: { message: 'no', code: 'boom' } }
  const event: Answer = (_, response) => {
    openStream(response)
    sendEvent(response, boom)
    response.end()
  }
  for (const [answer, read] of [
    [answers(200, boom), models.textOf],
    [event, streamed],
  ] as const) {
    a.next.push(answer)
    expect(await read('named')).toBe('from B')
    a.next.push(answer)
    b.next.push(answer)
    await expect(read('named')).rejects.toMatchObject({ status: 502 })
  }
})

describe('what users of other gateways have reported', () => {
  /** Servers say in their own words that a request is too large (BerriAI/litellm issues 10793 and 12680). */
  it.each([
    [
      'sglang',
      {
        object: 'error',
        message: "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        type: 'BadRequestError',
        code: 400,
      },
    ],
    [
      'vllm',
      {
        object: 'error',
        message:
          "This model's maximum context length is 32768 tokens. However, you requested 33077 tokens.",
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    ],
    [
      'llama.cpp',
      {
        error: {
          code: 400,
          message: 'the request exceeds the available context size',
          type: 'exceed_context_size_error',
        },
      },
    ],
    [
      'vendorC',
      {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'prompt is too long: 201000 tokens > 200000 maximum',
        },
      },
    ],
    [
      'vendorD',
      {
        error: {
          code: 400,
          message:
            'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
    ['vendorF', { message: 'Input is too long for requested model.' }],
  ])('a context that is too small for %s leads to a larger one', async (_, body) => {
    a.next.push(answers(400, body))
    expect(await models.textOf('sized')).toBe('from A')
    expect(models.sentTo(a)).toEqual(['gpt-4o', 'gpt-4.1'])
  })

  // BerriAI/litellm pull 22624: SGLang sends the error inside of a stream with status 200.
  it('an error about the context in the first event of a stream leads to a larger one', async () => {
    a.next.push((_, response) => {
      openStream(response)
      const message =
        "The input (9000 tokens) is longer than the model's context length (8192 tokens)."
      sendEvent(response, {
        error: { object: 'error', message, type: 'BadRequestError', code: 400 },
      })
      sendEvent(response, '[DONE]')
      response.end()
    })
    expect(await streamed('sized')).toBe('from A')
  })

  // BerriAI/litellm issue 31557: after a limit, the next model has a smaller context.
  it('a next model that is too small is passed over, too', async () => {
    a.next.push(failsA(429, 'slow down'))
    b.next.push(answers(400, tooLong))
    expect(await models.textOf('sized')).toBe('from A')
    expect([...models.sentTo(a), ...models.sentTo(b)]).toEqual(['gpt-4o', 'gpt-4.1', 'gpt-4'])
  })

  // BerriAI/litellm issues 5512, 6532 and 6957.
  it('an overload in the first event of a stream leads to the next model', async () => {
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, { error: { type: 'overloaded_error', message: 'Overloaded' } })
      response.end()
    })
    expect(await streamed('overloaded')).toBe('from B')
  })

  // agentgateway/agentgateway issues 1087 and 2979, kgateway-dev/kgateway issue 13216.
  it('a host without an address, and a first provider that is always down, lead to the next one', async () => {
    expect(await models.textOf('unresolved')).toBe('from B')
    for (let count = 0; count < 3; count++) {
      a.next.push(failsA(503, 'down'))
      expect(await models.textOf('always-down')).toBe('from B')
    }
  })
})

describe('[AIBackend.failover] groups of a GatewayBackend', () => {
  it('have the same conditions', async () => {
    a.next.push(answers(403, errorWith('insufficient_quota')))
    expect(await models.textOf('m', '/groups')).toBe('from B')
    a.next.push(stalls(true))
    expect(await streamed('m', '/groups')).toBe('from B')
    expect(c.calls).toEqual([])
  })
})
