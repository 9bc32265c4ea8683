/** Guards that ask the services of clouds and others, in whole and streamed traffic. */
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { ApplyGuardrailCommand, BedrockRuntimeClient } from '@aws-sdk/client-bedrock-runtime'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  configMap,
  gateway,
  routeByPath,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { mails, startGuardVendor } from '../support/vendors/guard-vendors.ts'
import { json } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'

const keys = { accessKeyId: 'AKID', secretAccessKey: 'secret' }
const authority = useAuthority()
const port = await freePort()
const model = useFixture(startVendorA)
const certificate = authority.issue([
  'bedrock-runtime.eu-west-1.amazonaws.com',
  'safe.cognitiveservices.azure.com',
])
const bedrock = useFixture(() => startGuardVendor('bedrock', { keys, tls: certificate }))
/** For the SDK, which has no authority of ours. */
const plainBedrock = useFixture(() => startGuardVendor('bedrock', { keys }))
const azure = useFixture(() => startGuardVendor('azure', { tls: certificate }))
const modelArmor = useFixture(() => startGuardVendor('modelArmor'))
const presidio = useFixture(() => startGuardVendor('presidio'))
const moderation = useFixture(() => startGuardVendor('moderation'))
const judge = useFixture(() => startGuardVendor('judge'))
const vendors = { bedrock, azure, modelArmor, presidio, moderation, judge }

const tls = { caCertificateRefs: [{ name: 'ca' }] }
const guards = {
  bedrock: {
    bedrockGuardrails: {
      identifier: 'g-1',
      version: '3',
      region: 'eu-west-1',
      policies: { auth: { aws: { secretRef: { name: 'aws' } } }, tls },
    },
  },
  azure: {
    azureContentSafety: {
      endpoint: 'https://safe.cognitiveservices.azure.com/',
      analyzeText: { severityThreshold: 4 },
      promptShield: {},
      policies: { auth: { secretRef: { name: 'azure' } }, tls },
    },
  },
  modelArmor: {
    googleModelArmor: {
      templateId: 't-1',
      projectId: 'p-1',
      location: 'europe-west4',
      backendRef: toBackend('model-armor'),
    },
  },
  presidio: { presidio: { backendRef: toBackend('presidio') } },
  moderation: { moderation: { backendRef: toBackend('moderation') } },
  judge: { judge: { backendRef: toBackend('judge'), model: 'judge-1' } },
  llamaGuard: {
    judge: { backendRef: toBackend('judge'), model: 'llama-guard', format: 'LlamaGuard' },
  },
  nemoGuard: { judge: { backendRef: toBackend('judge'), model: 'nemoguard', format: 'NemoGuard' } },
}
type Name = keyof typeof guards
const names = Object.keys(guards) as Name[]
const masking: readonly Name[] = ['bedrock', 'modelArmor', 'presidio']

const placeOf = (name: string): string => `by-${name.toLowerCase()}`
const guarded = (name: string, promptGuard: object) => [
  aiBackend(
    placeOf(name),
    { provider: { vendorA: {}, host: '127.0.0.1', port: model.port } },
    { ai: { promptGuard } },
  ),
  routeByPath(placeOf(name)),
]

useGateway(() => ({
  env: {
    NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/redirects.ts')}`,
    SLUICE_TEST_REDIRECTS: JSON.stringify({
      'bedrock-runtime.eu-west-1.amazonaws.com:443': bedrock.port,
      'safe.cognitiveservices.azure.com:443': azure.port,
    }),
  },
  manifests: [
    gateway(port),
    configMap('ca', { 'ca.crt': authority.certificate }),
    secret('aws', { accessKey: keys.accessKeyId, secretKey: keys.secretAccessKey }),
    secret('azure', { Authorization: 'azure-key' }),
    staticBackend('model-armor', modelArmor.port),
    staticBackend('presidio', presidio.port),
    staticBackend('moderation', moderation.port),
    staticBackend('judge', judge.port),
    ...names.flatMap((name) =>
      guarded(name, { request: [guards[name]], response: [guards[name]] }),
    ),
    ...guarded('presidio-rejects', {
      request: [{ presidio: { ...guards.presidio.presidio, action: 'Reject' } }],
    }),
    staticBackend('slow', presidio.port, { http: { requestTimeout: '100ms' } }),
    ...guarded('presidio-slow', { request: [{ presidio: { backendRef: toBackend('slow') } }] }),
    ...guarded('presidio-open', {
      request: [{ presidio: { ...guards.presidio.presidio, failureMode: 'FailOpen' } }],
    }),
  ],
}))

async function ask(name: string, content: string, stream = false) {
  const calls = model.calls.length
  const answer = await fetch(`http://127.0.0.1:${port}/${placeOf(name)}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm-1', stream, messages: [{ role: 'user', content }] }),
  })
  return { status: answer.status, text: await answer.text(), sent: model.calls[calls]?.text }
}

const vendorOf = (name: Name) =>
  name === 'llamaGuard' || name === 'nemoGuard' ? judge : vendors[name]

describe('a service that guards ask', () => {
  it.each(names)('%s refuses, masks and passes requests and answers', async (name) => {
    const masks = masking.includes(name)
    model.answer = completes('All is well')
    const fine = await ask(name, 'Hello')
    expect([fine.status, fine.sent]).toEqual([200, expect.stringContaining('Hello')])
    if (name !== 'presidio') {
      expect(await ask(name, 'a forbidden word')).toMatchObject({ status: 403, sent: undefined })
    }
    const mail = await ask(name, '𝄞 write to bob@example.com, or to eve@example.com')
    expect(mail.status).toBe(200)
    expect(mails.test(mail.sent ?? '')).toBe(!masks)
    mails.lastIndex = 0
    if (name === 'presidio') {
      expect(mail.sent).toContain('𝄞 write to <EMAIL_ADDRESS>, or to <EMAIL_ADDRESS>')
    }
    for (const stream of [false, true]) {
      model.answer = completes('Ask bob@', 'example.com')
      const answer = await ask(name, 'Hello', stream)
      expect([answer.status, answer.text.includes('example.com')]).toEqual([200, !masks])
      if (name === 'presidio') continue
      model.answer = completes('a forb', 'idden word')
      expect(await ask(name, 'Hello', stream)).toMatchObject({ status: 403 })
    }
  })

  it.each(names)(
    '%s checks every piece of a long text, and joins what was masked',
    async (name) => {
      model.answer = completes('All is well')
      const filler = 'lorem ipsum dolor sit amet '.repeat(5_000)
      const mail = 'bob@example.com '
      const long = [filler, filler].join(mail)
      const before = vendorOf(name).calls.length
      const masked = await ask(name, long + mail)
      expect(masked.status).toBe(200)
      expect(vendorOf(name).calls.length - before).toBeGreaterThan(1)
      if (masking.includes(name)) {
        const { messages } = JSON.parse(masked.sent ?? '') as { messages: { content: string }[] }
        const mask = { bedrock: '{EMAIL}', modelArmor: '[EMAIL_ADDRESS]' }[name as string]
        const joined = long + mail
        expect(messages[0]?.content).toBe(joined.replace(mails, mask ?? '<EMAIL_ADDRESS>'))
      }
      if (name !== 'presidio') {
        expect((await ask(name, `${filler}forbidden ${filler}`)).status).toBe(403)
      }
    },
  )

  it.each(names)(
    '%s refuses the message if the service fails or gives no known answer',
    async (name) => {
      const vendor = vendorOf(name)
      const bodies: object[] = [{}, { action: 'PERHAPS', results: [], choices: [] }]
      for (const body of bodies) {
        vendor.next.push((_, response) => json(response, 200, body))
        vendor.next.push((_, response) => json(response, 200, body))
        expect(await ask(name, 'Hello')).toMatchObject({ status: 503, sent: undefined })
        vendor.next.length = 0
      }
      vendor.next.push((_, response) => json(response, 500, {}))
      vendor.next.push((_, response) => json(response, 500, {}))
      expect((await ask(name, 'Hello')).status).toBe(503)
      vendor.next.length = 0
    },
  )
})

describe('Model Armor', () => {
  it('fails if a filter that matched nothing was skipped', async () => {
    const skipped = {
      raiFilterResult: { executionState: 'EXECUTION_SKIPPED', matchState: 'NO_MATCH_FOUND' },
    }
    modelArmor.next.push((_, response) =>
      json(response, 200, {
        sanitizationResult: {
          filterMatchState: 'NO_MATCH_FOUND',
          invocationResult: 'PARTIAL',
          filterResults: [skipped],
        },
      }),
    )
    expect((await ask('modelArmor', 'Hello')).status).toBe(503)
  })
})

describe('Azure AI Content Safety', () => {
  it('gets results of tools as documents, and the key in its own header', async () => {
    const messages = [
      { role: 'user', content: 'Hello' },
      {
        role: 'assistant',
        tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 't', content: 'a jailbreak' },
    ]
    const answer = await fetch(`http://127.0.0.1:${port}/by-azure/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm-1', messages }),
    })
    expect(answer.status).toBe(403)
    expect(azure.calls.at(-1)?.headers['ocp-apim-subscription-key']).toBe('azure-key')
    expect(azure.calls.map(({ body }) => body.documents)).toContainEqual(['a jailbreak'])
  })
})

describe('Presidio', () => {
  it('refuses or lets pass as configured, also if it is late', async () => {
    model.answer = completes('All is well')
    expect((await ask('presidio-rejects', 'bob@example.com')).status).toBe(403)
    const outside = [{ entity_type: 'PERSON', start: 3, end: 99, score: 1 }]
    presidio.next.push((_, response) => json(response, 200, outside))
    expect((await ask('presidio', 'bob')).status).toBe(503)
    presidio.next.push((_, response) => json(response, 200, outside))
    expect((await ask('presidio-open', 'bob')).status).toBe(200)
    // It never answers.
    presidio.next.push(() => undefined)
    expect((await ask('presidio-slow', 'bob')).status).toBe(503)
  })
})

/** Sends a request of the SDK, which would use HTTP/2, to a server of HTTP/1.1. */
async function overHttp1({ method, hostname, port, path, headers, body }: SdkRequest) {
  const response = await fetch(`http://${hostname}:${port}${path}`, { method, headers, body })
  const bytes = Buffer.from(await response.arrayBuffer())
  return {
    response: {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      body: Readable.from([bytes]),
    },
  }
}

interface SdkRequest {
  readonly method: string
  readonly hostname: string
  readonly port: number
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
}

describe('the simulator of Bedrock', () => {
  it('understands the official SDK', async () => {
    const client = new BedrockRuntimeClient({
      endpoint: `http://127.0.0.1:${plainBedrock.port}`,
      region: 'eu-west-1',
      credentials: keys,
      requestHandler: { handle: overHttp1 },
    })
    const answer = await client.send(
      new ApplyGuardrailCommand({
        guardrailIdentifier: 'g-1',
        guardrailVersion: '3',
        source: 'INPUT',
        content: [{ text: { text: 'bob@example.com' } }],
      }),
    )
    expect(answer).toMatchObject({ action: 'GUARDRAIL_INTERVENED', outputs: [{ text: '{EMAIL}' }] })
  })
})
