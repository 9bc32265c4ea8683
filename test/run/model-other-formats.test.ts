/** Messages of another format than the gateway expects: requests by mistake, and answers that guards cannot read. */
import { request as sendRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { describeFormatCases } from '../core/texts/other-formats.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath, staticBackend, toBackend } from '../support/manifests.ts'
import { startUpstream } from '../support/upstream.ts'
import { acts, shown, startWebhook } from '../support/vendors/guard-services.ts'
import { eventually } from '../support/wait-for.ts'

const ssn = '123-45-6789'
const guards = [{ regex: { builtins: ['Ssn'] } }]
const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
}

/** A map without the formats of other paths. */
const few = { '/v1/chat/completions': 'Completions' }

interface Reply {
  readonly status?: number
  readonly type?: string | undefined
  readonly body: string | Uint8Array
}

const completion = {
  choices: [{ index: 0, message: { role: 'assistant', content: `is ${ssn}` } }],
}
const harmless = JSON.stringify({ choices: [{ index: 0, message: { content: 'hi' } }] })
let reply: Reply = { body: harmless }

const vendor = useFixture(() =>
  startUpstream('vendor', (_, response) => {
    const { status = 200, type, body } = reply
    response.writeHead(status, type === undefined ? {} : { 'content-type': type })
    response.end(body)
  }),
)
const hook = useFixture(startWebhook)
const port = await freePort()
const running = useGateway(() => {
  const at = { host: '127.0.0.1', port: vendor.port }
  const reached = (name: string, provider: object, ai?: object) => [
    aiBackend(name, { provider: { ...provider, ...at } }, ai && { ai }),
    routeByPath(name),
  ]
  const both = { request: guards, response: guards }
  const webhook = { backendRef: toBackend('hook') }
  return {
    manifests: [
      gateway(port),
      staticBackend('hook', hook.port),
      ...reached('few', { vendorA: {} }, { routes: few }),
      ...reached('few-c', { vendorC: {} }, { routes: few }),
      ...reached('few-guarded', { vendorA: {} }, { routes: few, promptGuard: both }),
      ...reached('open', { vendorA: {} }),
      ...reached('open-c', { vendorC: {} }),
      ...reached('unmapped', { vendorA: {} }, { promptGuard: both }),
      ...reached('wildcard', { vendorA: {} }, { routes: { '*': 'Messages' } }),
      ...reached('mapped', { vendorA: { model: 'm' } }, { routes, promptGuard: both }),
      ...reached('mapped-c', { vendorC: { model: 'm' } }, { routes, promptGuard: both }),
      ...reached('mapped-d', { vendorD: { model: 'm' } }, { routes, promptGuard: both }),
      ...reached('mapped-f', { vendorF: { model: 'm' } }, { routes, promptGuard: both }),
      ...reached('plain', { vendorA: {} }, { routes }),
      ...reached('hooked', { vendorA: {} }, { routes, promptGuard: { response: [{ webhook }] } }),
    ],
  }
})

beforeEach(() => {
  reply = { body: harmless, type: 'application/json' }
  hook.calls.length = 0
  hook.answer = acts({})
})

async function post(backend: string, path: string, body: object | string) {
  const before = vendor.received.length
  const answer = await fetch(`http://127.0.0.1:${port}/${backend}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const received = await answer.text()
  return { status: answer.status, text: received, sent: vendor.received[before]?.body }
}

const hi = [{ role: 'user', content: 'hi' }]
const chat = { model: 'm', messages: hi }

describe('a request in a format that no type is mapped to', () => {
  it.each([
    ['/v1/responses', { model: 'm', input: ssn }, '/responses: Responses'],
    ['/v1/embeddings', { model: 'm', input: ssn }, '/embeddings: Embeddings'],
    ['/v1/messages', chat, '/v1/messages: Messages'],
    ['/v1/messages/count_tokens', chat, '/messages/count_tokens: VendorCTokenCount'],
    ['/v1//messages/count%5ftokens/', chat, '/messages/count_tokens: VendorCTokenCount'],
    ['/v1/completions', { model: 'm', prompt: ssn }, '/completions: TextCompletions'],
    ['/v1beta/models/g:generateContent', { contents: [] }, ':generatecontent: GenerateContent'],
    [
      '/v1beta/models/g:streamGenerateContent?alt=sse',
      {},
      ':streamgeneratecontent: GenerateContent',
    ],
    ['/model/m/converse', chat, '/converse: Converse'],
    ['/model/m/invoke', chat, '/invoke: InvokeModel'],
    ['/v2/rerank', { model: 'm', query: ssn }, '/rerank: Rerank'],
    ['/v1beta/models/g:batchGenerateContent', { contents: [] }, undefined],
    ['/v1/audio/transcriptions', {}, '/audio/transcriptions: Transcriptions'],
    ['/v1/files', {}, '/v1/files: Files'],
    ['/v1/batches/batch_1', {}, '/v1/batches: Batches'],
    ['/v1/responses/resp_1/cancel', {}, '/responses: Responses'],
    ['/api/generate', { model: 'm', prompt: ssn }, undefined],
    ['/v1/audio/speech', { model: 'm', input: ssn }, '/audio/speech: Speech'],
  ])('is refused at %s, which the error names with the setting', async (path, body, example) => {
    for (const backend of ['few', 'few-c', 'few-guarded']) {
      const { status, text, sent } = await post(backend, path, body)
      expect([status, sent]).toEqual([400, undefined])
      const shownPath = `/${backend}${path.split('?')[0]}`
      expect(text).toContain(`${shownPath} is not mapped to a type: `)
      expect(text).toContain('spec.policies.ai.routes')
      const advice = example ?? 'no type reads its format; to send it unread'
      expect(text.replaceAll('\\"', '"')).toContain(advice)
    }
  })

  it('is refused in the form of errors of its API', async () => {
    const errorOf = async (path: string) => JSON.parse((await post('few', path, chat)).text)
    expect(await errorOf('/v1/responses')).toMatchObject({
      error: { type: 'invalid_request_error', param: null },
    })
    expect(await errorOf('/v1/messages')).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error' },
    })
    expect(await errorOf('/v1beta/models/g:generateContent')).toMatchObject({
      error: { code: 400, status: 'INVALID_ARGUMENT' },
    })
    expect(typeof (await errorOf('/model/m/converse')).message).toBe('string')
    expect(typeof (await errorOf('/api/generate')).error).toBe('string')
  })

  it('is refused if only the type of all other paths applies', async () => {
    const { status, sent } = await post('wildcard', '/v1/messages/count_tokens', chat)
    expect([status, sent]).toEqual([400, undefined])
    expect((await post('wildcard', '/v1/messages', chat)).sent).toBeDefined()
  })

  it.each([
    ['without messages', { model: 'm', input: ssn }],
    ['with messages that are a text', { model: 'm', messages: ssn }],
    ['with messages that are null', { model: 'm', messages: null }],
  ])('is not sent as a chat %s', async (_, body) => {
    for (const backend of ['open', 'open-c', 'unmapped', 'plain']) {
      const path = backend === 'plain' ? '/v1/chat/completions' : '/anything'
      const { status, text, sent } = await post(backend, path, body)
      expect([backend, status, sent]).toEqual([backend, 400, undefined])
      expect(JSON.parse(text).error.message).toBe(
        `messages must be an array. If /${backend}${path} has another format than Completions, set spec.policies.ai.routes`,
      )
    }
  })

  it.each(['system', 'instructions', 'input', 'contents', 'prompt', 'documents', 'System'])(
    'is refused for its top-level field %s if guards or translations would not read it',
    async (name) => {
      for (const backend of ['unmapped', 'open-c']) {
        const { status, text, sent } = await post(backend, '/anything', { ...chat, [name]: ssn })
        expect([backend, status, sent]).toEqual([backend, 400, undefined])
        expect(JSON.parse(text).error.message).toBe(
          `Completions requests have no field ${name}. If /${backend}/anything has another format than Completions, set spec.policies.ai.routes`,
        )
      }
      // Servers of this format may have fields of their own.
      expect((await post('open', '/anything', { ...chat, [name]: 'x' })).sent).toContain(name)
    },
  )

  it('is sent if it is a chat', async () => {
    for (const path of ['/v1/chat/completions', '/anything', '']) {
      expect((await post('open', path, chat)).sent).toContain('"hi"')
      expect((await post('unmapped', path, chat)).sent).toContain('"hi"')
    }
  })
})

describe('a request without a body', () => {
  const ask = async (method: string, path: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number | undefined
      allow: string | undefined
      body: string
    }>()
    const target = `http://127.0.0.1:${port}${path}`
    sendRequest(target, { method }, async (response) => {
      const { statusCode: status, headers } = response
      resolve({ status, allow: headers.allow, body: await text(response) })
    })
      .on('error', reject)
      .end()
    return promise
  }

  it.each(['GET', 'DELETE', 'PUT'])('is told that %s is not supported', async (method) => {
    const { status, allow, body } = await ask(method, '/plain/v1/chat/completions')
    expect([status, allow]).toEqual([405, 'POST'])
    expect(JSON.parse(body).error.message).toBe(
      `${method} /plain/v1/chat/completions is not supported: send Completions requests with POST`,
    )
    expect((await ask(method, '/plain/v1/messages')).body).toContain('"type":"error"')
  })

  it('is told that no type is mapped to the list of models', async () => {
    const { status, body } = await ask('GET', '/few/v1/models')
    expect(status).toBe(400)
    expect(body).toContain('/few/v1/models is not mapped to a type')
  })

  it('is no call of a model in the access log if it only probes the path', async () => {
    expect(await ask('HEAD', '/open/probe')).toMatchObject({ status: 405, body: '' })
    await eventually(() => expect(running.stdout).toContain('/open/probe'))
    const line = running.stdout.split('\n').find((one) => one.includes('/open/probe'))
    expect(line).not.toMatch(/protocol=llm|error=/)
  })
})

/** The backend whose provider has the format of the path. */
const native = (path: string) => (path === '/v1/messages' ? 'mapped-c' : 'mapped')

describe('the gateway', () => {
  describeFormatCases({
    sealsIds: true,
    async request(path, body) {
      reply = { body: '{"error":{"message":"no"}}', status: 400, type: 'application/json' }
      return post(native(path), path, body)
    },
    answer(path, asked, body, type) {
      reply = { body, type }
      return post(native(path), path, asked)
    },
    isRelayed: false,
  })
})

const answerText = JSON.stringify(completion)
const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: `is ${ssn}` } }] })}\n\n`

/** Answers that are no JSON object or event of a format: the body and its type. */
const unreadable: readonly (readonly [string, string, string | undefined])[] = [
  ['JSON with a byte order mark', `\ufeff${answerText}`, 'application/json'],
  ['JSON that is cut', answerText.slice(0, -2), 'application/json'],
  ['JSON with bytes after it', `${answerText}ab`, 'application/json'],
  ['two documents', `${answerText}\n${answerText}`, 'application/json'],
  ['a list', `[${answerText}]`, 'application/json'],
  ['a text', JSON.stringify(`is ${ssn}`), 'application/json'],
  ['lines of JSON', `${answerText}\n${answerText}\n`, 'application/x-ndjson'],
  ['events labelled as text', event, 'text/plain'],
  ['events labelled as bytes', event, 'application/octet-stream'],
  ['events without a type', event, undefined],
  ['JSON labelled as events', answerText, 'text/event-stream'],
  ['a page in an event', `data: <p>is ${ssn}\n\n`, 'text/event-stream'],
  ['a page', `<p>is ${ssn}`, 'text/html'],
  ['a text in an event', `data: is ${ssn}\n\n`, 'text/event-stream'],
  ['an answer of a generate endpoint', `{"model":"m","response":"is ${ssn}"}`, 'application/json'],
  ['an answer of a chat endpoint', `{"message":{"content":"is ${ssn}"}}`, 'application/json'],
  [
    'an answer in another format',
    `{"content":[{"type":"text","text":"is ${ssn}"}]}`,
    'application/json',
  ],
]

const asks: Readonly<Record<string, object>> = {
  '/v1/chat/completions': chat,
  '/v1/messages': { ...chat, max_tokens: 5 },
  '/v1/responses': { model: 'm', input: 'hi' },
  '/v1/embeddings': { model: 'm', input: 'hi' },
  '/v1/messages/count_tokens': chat,
}

describe('an answer that guards cannot read', () => {
  it.each(unreadable)('reaches neither clients nor the access log: %s', async (_, body, type) => {
    reply = { body, type }
    for (const backend of ['mapped', 'mapped-c', 'mapped-d', 'mapped-f', 'hooked']) {
      hook.answer = acts({ body: 'no', status_code: 451 })
      for (const [path, asked] of Object.entries(asks)) {
        if (backend !== 'mapped' && path === '/v1/embeddings') continue
        // The content of a translated vendor has its own format.
        if (backend === 'mapped-c' && body.includes('"content":[{"type":"text"')) continue
        for (const stream of [false, true]) {
          const { status, text } = await post(backend, path, { ...asked, stream })
          expect(text, `${backend} ${path} ${stream}`).not.toContain(ssn)
          expect(text).not.toBe('')
          if (status < 300) expect(text).toMatch(/error|input_tokens/)
        }
      }
    }
    await post('open', '/v1/chat/completions', chat)
    await post('plain', '/done', chat)
    await eventually(() => expect(running.stdout).toContain('/plain/done'))
    expect(running.stdout).not.toContain(ssn)
  })

  it('is quoted to clients without guards, but not in the access log', async () => {
    reply = { body: `<p>is ${ssn}`, type: 'text/html' }
    expect((await post('plain', '/v1/chat/completions', chat)).text).toContain(ssn)
    reply = { body: `{"error":{"message":"is ${ssn}"}}`, type: 'application/json' }
    expect((await post('plain', '/v1/chat/completions', chat)).text).toContain(ssn)
    await post('plain', '/end', chat)
    await eventually(() => expect(running.stdout).toContain('/plain/end'))
    expect(running.stdout).not.toContain(ssn)
  })
})

describe('an error of the provider', () => {
  const errors = [
    { error: { message: `is ${ssn}`, type: 'a', metadata: { raw: `is ${ssn}` } } },
    { error: `is ${ssn}` },
    { message: `is ${ssn}` },
    { detail: `is ${ssn}` },
    { detail: [{ msg: `is ${ssn}`, loc: [] }] },
    { type: 'error', error: { type: 'api_error', message: `is ${ssn}` } },
    { type: 'error', note: `is \u0031${ssn.slice(1)}` },
  ]

  it.each([200, 400, 404, 500])('is masked with status %s in every format', async (status) => {
    for (const error of [...errors, [errors[0]]]) {
      const body = JSON.stringify(error).replaceAll('1', '\\u0031')
      reply = { status, body, type: 'application/json' }
      for (const backend of ['mapped', 'mapped-c', 'mapped-d', 'mapped-f']) {
        for (const [path, asked] of Object.entries(asks)) {
          if (backend !== 'mapped' && path === '/v1/embeddings') continue
          const answer = await post(backend, path, { ...asked, stream: false })
          const at = `${backend} ${path} ${body}`
          expect(answer.text.replaceAll('\\u0031', '1'), at).not.toContain(ssn)
          if (path !== '/v1/messages/count_tokens') {
            expect(answer.status, at).toBeGreaterThanOrEqual(400)
          }
        }
      }
    }
  })

  it('is judged by webhooks, whole and in streams', async () => {
    for (const [type, body] of [
      ['application/json', JSON.stringify(errors[0])],
      ['text/event-stream', `data: ${JSON.stringify(errors[0])}\n\n`],
    ] as const) {
      for (const status of type === 'application/json' ? [200, 400] : [200]) {
        reply = { status, body, type }
        hook.calls.length = 0
        hook.answer = acts({ body: 'no', status_code: 451 })
        const answer = await post('hooked', '/v1/chat/completions', { ...chat, stream: true })
        expect([answer.status, answer.text]).toEqual([451, 'no'])
        expect(
          hook.calls
            .flatMap(shown)
            .map(({ content }) => content)
            .join(),
        ).toContain(ssn)
        hook.answer = acts({})
        const passed = await post('hooked', '/v1/chat/completions', { ...chat, stream: true })
        expect(passed.text).toContain(ssn)
      }
    }
  })
})
