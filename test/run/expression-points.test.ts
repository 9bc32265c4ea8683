/** Expressions that read what never has a value where they run: their policies are invalid and closed. */
import { describe, expect, it } from 'vitest'
import { kinds } from '../../src/control/api/kinds.ts'
import { expressionsWithoutPoint } from '../../src/control/desired/derive/expressions.ts'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  mcpBackend,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

type Fields = Readonly<Record<string, unknown>>

const rules = (action: string, expression: string) => ({
  authorization: { action, policy: { matchExpressions: [expression] } },
})
const deny = (expression: string): Fields => ({ traffic: rules('Deny', expression) })
const descriptor = (expression: string, unit = 'Requests'): Fields => ({
  traffic: {
    rateLimit: {
      global: {
        domain: 'shop',
        backendRef: toBackend('main'),
        descriptors: [{ unit, entries: [{ name: 'key', expression }] }],
      },
    },
  },
})
const header = (value: string) => ({ set: [{ name: 'x-value', value }] })
const changed = (part: 'request' | 'response', value: string): Fields => ({
  traffic: { transformation: { [part]: header(value) } },
})
const asked = (http: Fields): Fields => ({
  traffic: { extAuth: { backendRef: toBackend('main'), http } },
})

/** Policies of routes, and a part of the message that the condition must have. */
const invalid: Readonly<Record<string, readonly [spec: Fields, message: string]>> = {
  'model-request': [deny('llmRequest.model != "cheap"'), 'llmRequest is never set'],
  'model-parameter': [deny('llm.params.max_tokens > 10'), 'llm is never set'],
  'model-by-key': [deny('default(llm["requestModel"], "cheap") != "cheap"'), 'use json(request'],
  'any-model': [deny('llmRequest != null'), 'llmRequest is never set'],
  'backend-name': [deny('backend.name == "default/main"'), 'backend is never set'],
  'response-code': [deny('request.path == "/x" || response.code == 200'), 'response is never set'],
  'has-response': [deny('has(response.code)'), 'response is never set'],
  tool: [deny('mcp.tool.name == "bad"'), 'use authorization or rateLimit of backend.mcp, or'],
  hostname: [deny('destination.hostname == "x"'), 'destination has no field hostname'],
  workload: [deny('source.unverifiedWorkload == "y"'), 'no field unverifiedWorkload'],
  metadata: [deny('metadata.x == "y"'), 'metadata is never set'],
  'end-time': [deny('request.endTime > request.startTime'), 'request has no field endTime'],
  host: [deny('request.headers["Host"] == "x"'), 'request.headers has no Host; use request.host'],
  path: [deny('request.headers[":path"] == "/x"'), 'use request.pathAndQuery'],
  allow: [{ traffic: rules('Allow', 'backend.type != "ai"') }, 'backend is never set'],
  'limit-tool': [descriptor('mcp.tool.name'), 'mcp is never set'],
  'limit-model': [descriptor('llm.requestModel'), 'llm is never set'],
  'limit-answer': [descriptor('llm.responseModel', 'Tokens'), 'llm has no field responseModel'],
  'early-header': [changed('request', 'backend.name'), 'backend is never set'],
  'late-header': [changed('response', 'string(request.endTime)'), 'no field endTime'],
  'asked-path': [asked({ path: '"/" + backend.name' }), 'backend is never set'],
  'asked-header': [asked({ addRequestHeaders: { x: 'mcp.method' } }), 'mcp is never set'],
  'asked-answer': [asked({ responseMetadata: { x: 'llm.requestModel' } }), 'llm is never set'],
}

const valid: Readonly<Record<string, Fields>> = {
  body: deny('string(request.body).contains("expensive")'),
  always: {
    traffic: rules('Require', 'response == null && !has(request.endTime) && backend == null'),
  },
  bound: deny('["a"].exists(llm, llm == "b")'),
  port: deny('destination.port == 1'),
  tokens: descriptor('llm.requestModel', 'Tokens'),
  answer: changed('response', 'string(response.code)'),
  metadata: asked({ path: '"/"', responseMetadata: { x: 'response.code' } }),
}

const port = await freePort()
const upstream = useUpstream()
const running = useGateway(() => {
  const backendRefs = [toBackend('main')]
  const route = (name: string) =>
    httpRoute(name, { hostnames: [`${name}.example.com`], rules: [{ backendRefs }] })
  const specs = [
    ...Object.entries(invalid).map(([name, [spec]]) => [`bad-${name}`, spec] as const),
    ...Object.entries(valid).map(([name, spec]) => [`good-${name}`, spec] as const),
  ]
  const hostnames = ['routed', 'processed', 'known']
  return {
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'http', port, protocol: 'HTTP' },
          ...hostnames.map((name) => {
            return { name, port, protocol: 'HTTP', hostname: `${name}.early.example.com` }
          }),
        ],
      }),
      staticBackend('main', upstream.port),
      ...specs.flatMap(([name, spec]) => [route(name), policy(name, `HTTPRoute/${name}`, spec)]),
      httpRoute('early', {
        hostnames: hostnames.map((name) => `${name}.early.example.com`),
        rules: [{ backendRefs }],
      }),
      ...Object.entries({
        routed: 'proxy.route.name == "early"',
        processed: 'extproc.verdict == "bad"',
        known: 'extauthz.verdict == "bad" || proxy.listener.name == "other"',
      }).map(([name, expression]) =>
        policy(name, `Gateway/edge#${name}`, {
          traffic: { phase: 'PreRouting', ...rules('Deny', expression) },
        }),
      ),
      mcpBackend('tools', [{ name: 'one', static: { host: '127.0.0.1', port: upstream.port } }]),
      ...['response.code == 200', 'llmRequest.model == "x"', 'string(request.body) == "x"'].map(
        (expression, at) =>
          policy(`tools-${at}`, 'GatewayBackend/tools', {
            backend: { mcp: rules('Deny', expression) },
          }),
      ),
      policy('observed', 'Gateway/edge', {
        frontend: {
          accessLog: {
            attributes: { add: [{ name: 'result', expression: 'mcp.tool.result' }] },
          },
        },
      }),
    ],
  }
})

const statusOf = async (host: string) => (await running.send(port, { host })).status

describe('an expression that reads what never has a value at its point', () => {
  it.each(Object.entries(invalid))(
    'makes the policy %s invalid, and its requests are refused',
    async (name, [, message]) => {
      const accepted = await running.condition('GatewayPolicy', `bad-${name}`, 'Accepted', 'False')
      expect(accepted.reason).toBe('Invalid')
      expect(accepted.message).toContain(message)
      expect(await statusOf(`bad-${name}.example.com`)).toBe(500)
    },
  )

  it.each(Object.keys(valid))('is not found in the policy %s', async (name) => {
    const accepted = await running.condition('GatewayPolicy', `good-${name}`, 'Accepted', 'True')
    expect(accepted.reason).toBe('Valid')
    expect(await statusOf(`good-${name}.example.com`)).toBe(200)
  })

  it('closes the listener of a policy that runs before the route is known', async () => {
    const routed = await running.condition('GatewayPolicy', 'routed', 'Accepted', 'False')
    expect(routed.message).toContain(
      'proxy has no field route before the route is selected; use phase PostRouting',
    )
    await running.condition('GatewayPolicy', 'processed', 'Accepted', 'False')
    await running.condition('GatewayPolicy', 'known', 'Accepted', 'True')
    const statuses = ['routed', 'processed', 'known'].map((name) =>
      statusOf(`${name}.early.example.com`),
    )
    expect(await Promise.all(statuses)).toEqual([500, 500, 200])
  })

  it.each([
    [0, 'response is never set'],
    [1, 'llmRequest is never set'],
    [2, 'request has no field body'],
  ])('makes rule %i about tools of an MCP server invalid', async (at, message) => {
    const accepted = await running.condition('GatewayPolicy', `tools-${at}`, 'Accepted', 'False')
    expect(accepted.message).toContain(message)
  })

  it('is reported in the access log, and requests still pass', async () => {
    const accepted = await running.condition('GatewayPolicy', 'observed', 'Accepted', 'True')
    expect(accepted.reason).toBe('PartiallyValid')
    expect(accepted.message).toContain('mcp.tool has no field result')
  })
})

describe('the table of variables', () => {
  it('knows when each expression that users can write runs', () => {
    const own = kinds.filter((kind) => kind.own).map(({ kind }) => kind)
    expect(own).toContain('GatewayPolicy')
    expect(own.flatMap(expressionsWithoutPoint)).toEqual([])
  })
})
