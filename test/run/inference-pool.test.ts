import { request as httpRequest } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { type AskedPick, type Pick, startEndpointPicker } from '../support/endpoint-picker.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import {
  configMap,
  gateway,
  httpRoute,
  inferencePool,
  manifest,
  pod,
  policy,
  service,
  toPool,
} from '../support/manifests.ts'
import type { Answer } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const at = (name: string) => `${name}.example.com`
const chat = '{"model":"small","messages":[]}'
const echo: Answer = (received, response) => {
  response.setHeader('x-from', received.upstream)
  response.end(JSON.stringify(received))
}

let pick: (asked: AskedPick) => Pick
let answer: Answer

const a = () => `127.0.0.1:${upstreams.a.port}`
const b = () => `127.0.0.1:${upstreams.b.port}`
const unreachable = () => `127.0.0.1:${down}`

const routed = (name: string, backendRefs: object[] = [toPool(name)], more: object = {}) =>
  httpRoute(name, { hostnames: [at(name)], rules: [{ backendRefs, ...more }] })
const h2c = { appProtocol: 'kubernetes.io/h2c' }

function members(extra: readonly ReturnType<typeof pod>[] = []): string {
  return manifest(
    pod('m-0', 'model', '127.0.0.1'),
    pod('m-1', 'model', '127.0.0.9', false),
    ...extra,
  )
}

const authority = useAuthority()
const answering: Answer = (received, response) => answer(received, response)
const upstreams = { a: useUpstream('a', answering), b: useUpstream('b', answering) }
const decide = (asked: AskedPick) => pick(asked)
const pickers = {
  plain: useFixture(() => startEndpointPicker(decide)),
  secure: useFixture(() => startEndpointPicker(decide, authority.issue(['picker.example.com']))),
  other: useFixture(() => startEndpointPicker(() => ({ endpoints: b() }))),
}
const port = await freePort()
const down = await freePort()
const later = await freePort()
const nobody = await freePort()
const stats = `127.0.0.1:${await freePort()}`
const running = useGateway(() => {
  const ports = [upstreams.a.port, upstreams.b.port, down]
  const open = { name: 'plain', failureMode: 'FailOpen' }
  const verified = { caCertificateRefs: [{ name: 'authority' }] }
  return {
    args: ['--stats-address', stats],
    manifests: {
      'pods.yaml': members(),
      'all.yaml': manifest(
        gateway(port),
        ...service('plain', [pickers.plain.port], h2c),
        ...service('secure', [pickers.secure.port], { appProtocol: 'http2' }),
        ...service('verified', [pickers.secure.port]),
        ...service('misnamed', [pickers.secure.port]),
        ...service('other', [pickers.other.port], h2c),
        ...service('gone', [nobody], h2c),
        configMap('authority', { 'ca.crt': authority.certificate }),
        policy('verified', 'Service/verified', {
          backend: { tls: { sni: 'picker.example.com', ...verified } },
        }),
        policy('misnamed', 'Service/misnamed', {
          backend: { tls: { sni: 'another.example.com', ...verified } },
        }),
        inferencePool('model', 'model', ports, { name: 'plain' }),
        routed('model'),
        // Those that are up: any of them will do.
        inferencePool('open', 'model', ports.slice(0, 2), open),
        routed('open'),
        inferencePool('secure', 'model', ports, { name: 'secure' }),
        routed('secure'),
        inferencePool('verified', 'model', ports, { name: 'verified' }),
        routed('verified'),
        inferencePool('misnamed', 'model', ports, { name: 'misnamed' }),
        routed('misnamed'),
        inferencePool('closed', 'model', ports, { name: 'gone' }),
        routed('closed'),
        inferencePool('unasked', 'model', ports.slice(0, 2), { ...open, name: 'gone' }),
        routed('unasked'),
        inferencePool('missing', 'model', ports, { name: 'nowhere' }),
        routed('missing'),
        inferencePool('unpicked', 'model', ports, undefined),
        routed('unpicked'),
        inferencePool('empty', 'nobody', ports, open),
        routed('empty'),
        routed('nowhere'),
        inferencePool('later', 'later', [upstreams.b.port, later], { name: 'plain' }),
        routed('later'),
        inferencePool('other', 'model', ports, { name: 'other' }),
        routed('weighted', [toPool('model', { weight: 1 }), toPool('other', { weight: 1 })]),
        routed('retried', [toPool('model')]),
        policy('retried', 'HTTPRoute/retried', {
          traffic: { retry: { attempts: 2, codes: [503] } },
        }),
        routed('guarded', [toPool('model', { port: 1 })], {
          filters: [
            {
              type: 'RequestHeaderModifier',
              requestHeaderModifier: { set: [{ name: 'x-by-rule', value: 'yes' }] },
            },
          ],
        }),
        policy('guarded', 'HTTPRoute/guarded', {
          traffic: {
            authorization: {
              action: 'Deny',
              policy: { matchExpressions: ['request.headers["x-bad"] == "yes"'] },
            },
            transformation: { response: { set: [{ name: 'x-late', value: '"yes"' }] } },
          },
        }),
        policy('credentials', 'InferencePool/model', { backend: { auth: { key: 'for-models' } } }),
      ),
    },
  }
})

beforeEach(() => {
  pick = () => ({ endpoints: a() })
  answer = echo
})

const ask = (name: string, more: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: at(name), method: 'POST', path: '/v1/chat', body: chat, ...more })
const lastAsked = () => pickers.plain.asked.at(-1)
/** The line of the access log of a request to a host, with a text in it. */
const line = (name: string, text: string) =>
  waitFor(`a line with ${text}`, () =>
    running.stdout
      .split('\n')
      .find((one) => one.includes(`http.host=${at(name)} `) && one.includes(text)),
  )

interface Told {
  readonly kind: string
  readonly name: string
  readonly status: { readonly parents: { readonly conditions: Condition[] }[] }
}
interface Condition {
  readonly type: string
  readonly reason: string
}

let statuses: Promise<readonly Told[]> | undefined
/** Reasons of the conditions that an object has for its Gateway, by type; read once. */
async function told(kind: string, name: string): Promise<Record<string, string>> {
  statuses ??= sluice('status', '--log-file', running.logFile, '-o', 'json').then(
    ({ stdout }) => (JSON.parse(stdout) as { objects: Told[] }).objects,
  )
  const found = (await statuses).find((one) => one.kind === kind && one.name === name)
  const conditions = found?.status.parents.flatMap((parent) => parent.conditions) ?? []
  return Object.fromEntries(conditions.map(({ type, reason }) => [type, reason]))
}

describe('endpoints that a picker names [inference.pool]', () => {
  it('[inference.pool] sends a request where the picker says, by header and metadata', async () => {
    for (const [by, endpoint, from] of [
      [undefined, a(), 'a'],
      ['header', b(), 'b'],
      ['metadata', b(), 'b'],
    ] as const) {
      pick = () => ({ endpoints: endpoint, ...(by && { by }) })
      const response = await ask('model')
      expect(response.status, response.body).toBe(200)
      expect(response.headers['x-from']).toBe(from)
      expect(JSON.parse(response.body)).toMatchObject({ method: 'POST', body: chat })
    }
    expect(lastAsked()).toMatchObject({ body: chat, headers: { ':path': '/v1/chat' } })
  })

  it('[inference.pool] asks about requests without a body as well', async () => {
    const response = await ask('model', { method: 'GET', body: undefined })
    expect(response.headers['x-from']).toBe('a')
  })

  it('[inference.pool] tells which endpoints there are, and which one has answered', async () => {
    const response = await ask('model')
    expect(lastAsked()?.subset).toContain(a())
    expect(lastAsked()?.subset).toContain(b())
    expect(lastAsked()?.subset.some((one) => one.startsWith('127.0.0.9:'))).toBe(false)
    expect(response.headers['x-served-by']).toBe(a())
  })

  it('[inference.pool] sends on the body that the picker makes of the request', async () => {
    pick = () => ({ endpoints: a(), body: '{"model":"large"}' })
    const response = await ask('model')
    expect(JSON.parse(response.body)).toMatchObject({ body: '{"model":"large"}' })
  })

  it('[inference.pool] believes no client about the endpoint', async () => {
    pick = () => ({ endpoints: a(), by: 'metadata' })
    const headers = { 'x-gateway-destination-endpoint': b() }
    const response = await ask('model', { headers })
    expect(response.headers['x-from']).toBe('a')
    expect(lastAsked()?.headers['x-gateway-destination-endpoint']).toBeUndefined()
  })

  it('[inference.pool] tries the next endpoint where the first cannot be reached', async () => {
    pick = () => ({ endpoints: `${unreachable()},${b()}` })
    const response = await ask('model')
    expect(response.headers['x-from']).toBe('b')
    expect(JSON.parse(response.body)).toMatchObject({ body: chat })
    expect(response.headers['x-served-by']).toBe(b())
  })

  it('[inference.pool] goes down the list with the retries of the route', async () => {
    pick = () => ({ endpoints: `${a()},${b()}` })
    answer = (received, response) => {
      if (received.upstream === 'a') response.statusCode = 503
      echo(received, response)
    }
    const before = pickers.plain.asked.length
    const response = await ask('retried')
    expect(response).toMatchObject({ status: 200, headers: { 'x-served-by': b() } })
    expect(pickers.plain.asked.length).toBe(before + 1)
  })

  it('[inference.pool] leaves out what is no ready endpoint of the pool', async () => {
    const foreign = `127.0.0.9:${upstreams.b.port}`
    pick = () => ({ endpoints: `${foreign}, ${b()}` })
    expect((await ask('model')).headers['x-from']).toBe('b')
    pick = () => ({ endpoints: foreign })
    expect(await ask('model')).toMatchObject({ status: 503, body: 'endpoint picker failed' })
    expect(await line('model', 'fail_closed')).toContain('ready endpoint of the pool: 127.0.0.9')
    expect((await ask('open')).status).toBe(200)
  })

  it('[inference.pool] passes on what the picker answers itself', async () => {
    pick = () => ({ status: 429 })
    expect(await ask('model')).toMatchObject({ status: 429, body: 'refused by the picker' })
    expect(await ask('open')).toMatchObject({ status: 429 })
    await line('open', 'inference.pick=answered')
  })

  it('[inference.pool] asks the picker of the pool that the weights choose', async () => {
    const from = new Set<string>()
    await waitFor('both', async () => {
      from.add(String((await ask('weighted')).headers['x-from']))
      return from.size === 2
    })
    expect([...from].sort()).toEqual(['a', 'b'])
  })

  it('[inference.pool] works together with filters and policies of route and pool', async () => {
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

describe('a picker that fails [inference.pool]', () => {
  it('[inference.pool] FailClose refuses, FailOpen sends the request as it is', async () => {
    expect(await ask('closed')).toMatchObject({ status: 503, body: 'endpoint picker failed' })
    const response = await ask('unasked')
    expect(response.status).toBe(200)
    expect(JSON.parse(response.body)).toMatchObject({ body: chat })
    expect(response.headers['x-served-by']).toBeUndefined()
    await line('unasked', 'inference.pool=default/unasked inference.pick=fail_open ')
    const picks = (pool: string, mode: string, outcome: string) =>
      `inference_picks_total{pool="default/${pool}",failure_mode="${mode}",outcome="${outcome}"} 1\n`
    await waitFor('the counts', async () => {
      const metrics = await (await fetch(`http://${stats}/metrics`)).text()
      const isFailed = metrics.includes(picks('closed', 'FailClose', 'fail_closed'))
      return isFailed && metrics.includes(picks('unasked', 'FailOpen', 'fail_open'))
    })
  })

  it('[inference.pool] FailOpen also holds where the picker dies with the body in its hands', async () => {
    const body = 'x'.repeat(300_000)
    pick = () => ({ instead: (_, stream) => stream.end(13) })
    const open = await ask('open', { body })
    expect(JSON.parse(open.body)).toMatchObject({ body })
    expect((await ask('model', { body })).status).toBe(503)
  })

  it('[inference.pool] lets a response go on that the picker leaves', async () => {
    pick = () => ({
      instead: (message, stream) => {
        const { request } = message
        if (request.case === 'responseHeaders') stream.end(13)
        else if (request.case === 'requestBody') {
          const header = { key: 'x-gateway-destination-endpoint', rawValue: Buffer.from(a()) }
          const headerMutation = { setHeaders: [{ header }] }
          stream.send({
            response: { case: 'requestHeaders', value: { response: { headerMutation } } },
          })
          const value = { body: request.value.body, endOfStream: true }
          const mutation = { case: 'streamedResponse', value } as const
          const response = { bodyMutation: { mutation } }
          stream.send({ response: { case: 'requestBody', value: { response } } })
        }
      },
    })
    const response = await ask('model')
    expect(response.status).toBe(200)
    expect(JSON.parse(response.body)).toMatchObject({ body: chat })
  })

  it('[inference.pool] streams go through piece by piece', async () => {
    let next = () => {}
    answer = (_, response) => {
      response.setHeader('content-type', 'text/event-stream')
      response.write('data: one\n\n')
      next = () => response.end('data: two\n\n')
    }
    const text = await new Promise<string>((resolve, reject) => {
      const headers = { host: at('model') }
      const outgoing = httpRequest({ port, host: '127.0.0.1', method: 'POST', headers })
      outgoing.once('error', reject)
      outgoing.once('response', (response) => {
        let seen = ''
        response.on('data', (chunk: Buffer) => {
          seen += chunk.toString()
          // The second event is sent only once the first has arrived.
          if (seen === 'data: one\n\n') next()
        })
        response.once('end', () => resolve(seen))
      })
      outgoing.end(chat)
    })
    expect(text).toBe('data: one\n\ndata: two\n\n')
  })

  it('[inference.pool] speaks TLS to pickers and believes their own certificates', async () => {
    expect(await ask('secure')).toMatchObject({ status: 200 })
    expect(pickers.secure.asked.length).toBeGreaterThan(0)
  })

  it('[inference.pool] verifies a picker where a policy of its Service asks for that', async () => {
    expect(await ask('verified')).toMatchObject({ status: 200 })
    expect(await ask('misnamed')).toMatchObject({ status: 503 })
  })
})

describe('pools that cannot be used [inference.pool]', () => {
  it('[inference.pool] answers 500 for pools that lack something, and says so', async () => {
    for (const name of ['missing', 'unpicked', 'nowhere']) {
      expect((await ask(name)).status, name).toBe(500)
      expect(await told('HTTPRoute', name)).toMatchObject({ ResolvedRefs: 'BackendNotFound' })
    }
    expect(await told('InferencePool', 'model')).toEqual({
      Accepted: 'Accepted',
      ResolvedRefs: 'ResolvedRefs',
    })
    const missing = { Accepted: 'Accepted', ResolvedRefs: 'InvalidExtensionRef' }
    expect(await told('InferencePool', 'missing')).toEqual(missing)
    const unpicked = { Accepted: 'EndpointPickerRefMissing', ResolvedRefs: 'ResolvedRefs' }
    expect(await told('InferencePool', 'unpicked')).toEqual(unpicked)
  })

  it('[inference.pool] answers 503 where no Pod is ready, without asking', async () => {
    const before = pickers.plain.asked.length
    expect(await ask('empty')).toMatchObject({ status: 503, body: 'no healthy backends' })
    expect(pickers.plain.asked.length).toBe(before)
  })

  it('[inference.pool] follows Pods that come, become ready and go', async () => {
    pick = () => ({ endpoints: b() })
    expect((await ask('later')).status).toBe(503)
    const become = (extra: ReturnType<typeof pod>[], status: number) => {
      running.write('pods.yaml', members(extra))
      const request = { host: at('later'), method: 'POST', body: chat }
      return running.sendUntil(port, request, (response) => response.status === status)
    }
    await become([pod('late', 'later', '127.0.0.1')], 200)
    await become([pod('late', 'later', '127.0.0.1', false)], 503)
    await become([pod('late', 'later', '127.0.0.1')], 200)
    await become([pod('late', 'elsewhere', '127.0.0.1')], 503)
  })

  it('[inference.pool] refuses what the API server would refuse', async () => {
    const spec = { targetPorts: [{ number: 1 }, { number: 1 }], selector: { matchLabels: {} } }
    running.write('bad.yaml', manifest(inferencePool('bad', 'x', [], { name: 'plain' }, spec)))
    const { code, stdout, stderr } = await sluice('validate', '-f', running.manifests)
    running.remove('bad.yaml')
    expect(code).not.toBe(0)
    expect(stdout + stderr).toContain('port number must be unique')
    expect(stdout + stderr).toContain('spec.selector.matchLabels')
  })

  it('[inference.pool] explains where a request to a pool goes', async () => {
    const { stdout } = await sluice(
      'explain',
      'request',
      '--host',
      at('model'),
      '-f',
      running.manifests,
    )
    expect(stdout).toContain('InferencePool default/model')
  })
})
