/** Guard services that fail, in requests, whole answers and streams of every client format. */
import { createServer } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  routeByPath,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startWebhook } from '../support/vendors/guard-services.ts'
import { startGuardVendor } from '../support/vendors/guard-vendors.ts'
import { type Answer, json } from '../support/vendors/vendor.ts'
import { chunk } from '../support/vendors/vendor-a.ts'

const said = 'All is well'
let modelCalls = 0
const model = useListening(
  createServer(async (request, response) => {
    modelCalls++
    let text = ''
    for await (const bytes of request) text += String(bytes)
    if ((JSON.parse(text) as { stream?: boolean }).stream !== true) {
      const message = { role: 'assistant', content: said }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      json(response, 200, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices })
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const delta of [chunk('m', { content: said }), chunk('m', {}, 'stop')]) {
      response.write(`data: ${JSON.stringify(delta)}\n\n`)
    }
    response.end('data: [DONE]\n\n')
  }),
)

const vendors = {
  bedrock: useFixture(() => startGuardVendor('bedrock')),
  azure: useFixture(() => startGuardVendor('azure')),
  armor: useFixture(() => startGuardVendor('modelArmor')),
  presidio: useFixture(() => startGuardVendor('presidio')),
  moderation: useFixture(() => startGuardVendor('moderation')),
  judge: useFixture(() => startGuardVendor('judge')),
  hook: useFixture(startWebhook),
}
type Service = keyof typeof vendors
const services = Object.keys(vendors) as Service[]

const guardOf = (service: Service, backendRef: object): object =>
  ({
    bedrock: {
      bedrockGuardrails: { identifier: 'g-1', version: '3', region: 'eu-west-1', backendRef },
    },
    azure: {
      azureContentSafety: {
        analyzeText: {},
        backendRef,
      },
    },
    armor: {
      googleModelArmor: {
        templateId: 't-1',
        projectId: 'p-1',
        location: 'europe-west4',
        backendRef,
      },
    },
    presidio: { presidio: { backendRef } },
    moderation: { moderation: { backendRef } },
    judge: { judge: { backendRef, model: 'judge-1' } },
    hook: { webhook: { backendRef } },
  })[service]

const port = await freePort()
useGateway(() => {
  const auth = {
    auth: {
      aws: { secretRef: { name: 'aws' }, serviceName: 'bedrock', region: 'eu-west-1' },
    },
  }
  const guarded = (service: Service, name: string, policies: object) => [
    staticBackend(`to-${name}`, vendors[service].port, {
      ...policies,
      ...(service === 'bedrock' && auth),
    }),
    ...(['request', 'response'] as const).flatMap((list) => [
      aiBackend(
        `${name}-${list}`,
        {
          provider: {
            custom: { formats: [{ type: 'Completions' }] },
            host: '127.0.0.1',
            port: model.port,
          },
        },
        { ai: { promptGuard: { [list]: [guardOf(service, toBackend(`to-${name}`))] } } },
      ),
      routeByPath(`${name}-${list}`),
    ]),
  ]
  return {
    manifests: [
      gateway(port),
      secret('aws', { accessKey: 'AKID', secretKey: 'secret' }),
      ...services.flatMap((service) => [
        ...guarded(service, service, { http: { requestTimeout: '30s' } }),
        ...guarded(service, `${service}-late`, { http: { requestTimeout: '100ms' } }),
      ]),
    ],
  }
})

const answers = Object.fromEntries(services.map((service) => [service, undefined])) as Record<
  Service,
  Answer | undefined
>
afterEach(() => {
  for (const service of services) {
    vendors[service].answer = answers[service] ?? vendors[service].answer
    answers[service] = undefined
  }
})

const messages = [{ role: 'user', content: 'x' }]
const contents = [{ role: 'user', parts: [{ text: 'x' }] }]
const clients = {
  Completions: (stream: boolean) => ({
    path: '/v1/chat/completions',
    body: { model: 'm', stream, messages },
  }),
  Messages: (stream: boolean) => ({
    path: '/v1/messages',
    body: { model: 'm', stream, max_tokens: 9, messages },
  }),
  Responses: (stream: boolean) => ({
    path: '/v1/responses',
    body: { model: 'm', stream, input: 'x' },
  }),
  Gemini: (stream: boolean) => ({
    path: `/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents },
  }),
  Converse: (stream: boolean) => ({
    path: `/model/m/${stream ? 'converse-stream' : 'converse'}`,
    body: { messages: [{ role: 'user', content: [{ text: 'x' }] }] },
  }),
}

interface Cell {
  readonly client: keyof typeof clients
  readonly list: 'request' | 'response'
  readonly stream: boolean
}
const cells = (Object.keys(clients) as Cell['client'][]).flatMap((client) =>
  [false, true].flatMap((stream) =>
    (['request', 'response'] as const).map((list): Cell => ({ client, list, stream })),
  ),
)

async function ask(name: string, { client, list, stream }: Cell) {
  const { path, body } = clients[client](stream)
  const answer = await fetch(`http://127.0.0.1:${port}/${name}-${list}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  return { status: answer.status, text: Buffer.from(await answer.arrayBuffer()).toString('latin1') }
}

const failures: Readonly<Record<string, Answer>> = {
  'an outage': (_, response) => response.destroy(),
  'an error': (_, response) => json(response, 500, { message: 'internal' }),
  'an answer that is not JSON': (_, response) => response.end('<html>{"action":'),
  'an answer of another service': (_, response) => json(response, 200, { ok: true }),
  'no answer in time': () => undefined,
}

it.each(services)('%s lets all messages pass that it accepts', async (service) => {
  for (const cell of cells) {
    const { status, text } = await ask(service, cell)
    expect([cell, status, text.includes(said)]).toEqual([cell, 200, true])
  }
})

const cases = services.flatMap((service) =>
  Object.keys(failures).map((failure) => [service, failure] as const),
)
it.each(cases)('%s with %s refuses messages of every format', async (service, failure) => {
  const vendor = vendors[service]
  answers[service] = vendor.answer
  vendor.answer = failures[failure] ?? vendor.answer
  const name = failure === 'no answer in time' ? `${service}-late` : service
  for (const cell of cells) {
    modelCalls = 0
    const { status, text } = await ask(name, cell)
    expect([cell, status, text.includes('prompt guard failed')]).toEqual([cell, 503, true])
    expect(text).not.toContain(said)
    expect(modelCalls).toBe(cell.list === 'request' ? 0 : 1)
  }
})
