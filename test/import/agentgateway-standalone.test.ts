import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { answerAs } from './model-upstream.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const shop = useUpstream('shop')
const model = useUpstream('model', answerAs('model'))
const tools = useModernServer()

const config = () => `
config: { logging: { level: info } }
binds:
- port: ${port}
  listeners:
  - name: main
    hostname: "*"
    routes:
    - name: shop
      hostnames: [shop.example.com]
      matches:
      - path: { pathPrefix: /shop }
        method: GET
        headers: [{ name: x-team, value: { regex: "a|b" } }]
      policies:
        cors: { allowOrigins: ["https://app.example.com"], allowMethods: [GET], maxAge: 1m }
        requestHeaderModifier: { set: { x-edge: one } }
        responseHeaderModifier: { remove: [server] }
        urlRewrite: { path: { prefix: / } }
        authorization:
          rules:
          - 'request.headers["x-role"] == "admin"'
          - deny: 'request.path.endsWith("/secret")'
        localRateLimit: [{ maxTokens: 3, tokensPerFill: 2, fillInterval: 1h }]
        timeout: { requestTimeout: 10s }
      backends: [{ host: "127.0.0.1:${shop.port}" }]
    - name: moved
      matches: [{ path: { exact: /old } }]
      policies: { requestRedirect: { authority: shop.example.com, path: { full: /new }, status: 301 } }
    - name: keyed
      matches: [{ path: { pathPrefix: /keyed } }]
      policies:
        apiKey:
          mode: strict
          keys:
            - key: sk-ann
              metadata: { user: ann }
              budgets:
                - { name: daily, limit: { unit: USD, amount: 5 }, window: { rolling: 24h }, onBudgetExceeded: Audit }
            - { keyHash: "sha256:${hash('sha256', 'sk-bob')}", allowedModels: [gpt-4o] }
        directResponse: { status: 200, body: fine, headers: [{ name: x-a, value: '"b"' }] }
    - name: chat
      matches: [{ path: { pathPrefix: /v1 } }]
      policies:
        backendAuth: { key: $MODEL_KEY }
        ai:
          promptGuard:
            request: [{ regex: { action: mask, rules: [{ builtin: email }, { pattern: "secret-[0-9]+" }] } }]
      backends:
      - ai:
          name: local
          provider: { openAI: { model: gpt-4o } }
          hostOverride: 127.0.0.1:${model.port}
    - name: tools
      matches: [{ path: { pathPrefix: /tools } }]
      policies:
        mcpAuthorization: { rules: ['mcp.tool.name == "echo"'] }
      backends:
      - mcp: { targets: [{ name: one, mcp: { host: "http://127.0.0.1:${tools.port}/mcp" } }] }
`

describe('sluice import of the configuration file of the standalone agentgateway', () => {
  const { gateway, imported } = useImport(() => ({ content: config() }))
  const ask = (path: string, headers: Record<string, string> = {}) =>
    gateway.send(port, { path, host: 'shop.example.com', headers })
  const allowed = { 'x-team': 'a', 'x-role': 'admin' }

  it('is detected, loses no protection, and is valid', () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(outline(imported())).toEqual([
      'changed: binds[0].listeners[0].routes[1].policies.requestRedirect',
      'changed: binds[0].listeners[0].routes[2].policies.apiKey.keys[0].budgets[0]',
      'lost: config',
      'secret: binds[0].listeners[0].routes[2].policies.apiKey.keys[0].key',
      'secret: binds[0].listeners[0].routes[3].policies.backendAuth',
    ])
    expect(JSON.stringify(imported().findings)).not.toContain('sk-ann')
  })

  it('keeps matches, rewrites, header changes and rules', async () => {
    const page = await ask('/shop/page', allowed)
    expect(JSON.parse(page.body)).toMatchObject({ path: '/page', headers: { 'x-edge': 'one' } })
    expect((await ask('/shop/page', { 'x-team': 'c', 'x-role': 'admin' })).status).toBe(404)
    expect((await ask('/shop/page', { 'x-team': 'a' })).status).toBe(403)
    expect((await ask('/shop/secret', allowed)).status).toBe(403)
  })

  it('keeps limits with their burst', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 4; n++) statuses.push((await ask('/shop/page', allowed)).status)
    expect(statuses).toContain(429)
    expect(statuses[0]).toBe(200)
  })

  it('keeps the budgets of keys', () => {
    const documents = parseAllDocuments(imported().manifests['policies.yaml'] ?? '')
    const budget = documents.map((one) => one.toJS()).find(({ kind }) => kind === 'GatewayBudget')
    expect(budget.spec).toEqual({
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'keyed' }],
      when: 'apiKey != null && apiKey.id == "key-1"',
      limit: { unit: 'USD', amount: '5' },
      window: { type: 'Calendar', unit: 'Day' },
      onExceeded: 'Audit',
      unpriced: 'CountAs',
      unpricedAmount: '0',
    })
  })

  it('keeps redirects, API keys and direct responses', async () => {
    const moved = await ask('/old')
    expect(moved.status).toBe(301)
    expect(moved.headers.location).toBe(`http://shop.example.com:${port}/new`)
    expect((await ask('/keyed')).status).toBe(401)
    expect((await ask('/keyed', { authorization: 'Bearer sk-bob' })).status).toBe(200)
    expect(await ask('/keyed', { authorization: 'Bearer sk-ann' })).toMatchObject({
      status: 200,
      body: 'fine',
      headers: { 'x-a': 'b' },
    })
  })

  it('keeps models with their guards', async () => {
    const content = 'I am ann@example.com with secret-12'
    const body = JSON.stringify({ messages: [{ role: 'user', content }] })
    const path = '/v1/chat/completions'
    const answer = await gateway.send(port, { method: 'POST', path, body })
    expect(answer.body).not.toMatch(/ann@example|secret-12/)
    expect(model.received.at(-1)?.body).toContain('gpt-4o')
    expect(model.received.at(-1)?.headers.authorization).toBe('Bearer REPLACE_WITH_MODEL_KEY')
  })

  it('keeps MCP servers with their rules', async () => {
    const url = `http://127.0.0.1:${port}/tools`
    const call = (name: string) =>
      sendModern(url, modernRequest('tools/call', { name, arguments: {} }))
    expect((await call('echo')).message).toHaveProperty('result')
    expect((await call('other')).message).toMatchObject({ error: { code: -32602 } })
  })
})

it('makes agents of backends with the policy a2a', async () => {
  const result = await runImport(`binds:
- port: 8080
  listeners:
  - routes:
    - policies: { a2a: {} }
      backends: [{ host: "agent.example.com:9999" }]
    - matches: [{ path: { pathPrefix: /other } }]
      backends: [{ host: "other.example.com:9998", policies: { a2a: {} } }, { host: "plain.example.com:80" }]
`)
  expect(result).toMatchObject({ code: 0, findings: [], validation: { code: 0 } })
  const written = result.manifests['backends.yaml'] ?? ''
  expect(written.match(/ {2}a2a:\n {4}host: \S+\n {4}port: \d+/g)).toHaveLength(2)
  expect(written).toMatch(/static:\s+host: plain.example.com/)
})

describe('what the standalone agentgateway has and Sluice has not', () => {
  it('is reported with its line, and stops the conversion if it protects something', async () => {
    const result = await runImport(`binds:
- port: 3000
  listeners:
  - protocol: TCP
  - routes:
    - policies:
        extAuthz: { service: { name: { namespace: a, hostname: b }, port: 9000 } }
        a2a: {}
      backends:
      - mcp: { targets: [{ name: run, stdio: { cmd: npx } }] }
`)
    expect(result).toMatchObject({ code: 3, manifests: {} })
    const policies = 'binds[0].listeners[1].routes[0].policies'
    expect(outline(result)).toEqual([
      'changed: binds[0].listeners[1].routes[0].backends[0].mcp.targets[0].stdio',
      'lost: binds[0].listeners[0]',
      `lost: ${policies}.a2a`,
      `protection: ${policies}.extAuthz`,
    ])
    expect(result.findings.find(({ kind }) => kind === 'protection')).toMatchObject({ line: 7 })
  })
})

describe('policies of the standalone agentgateway that would be weaker', () => {
  const route = (policies: string) => `
binds:
- port: 3000
  listeners:
  - routes: [{ policies: ${policies}, backends: [{ host: 127.0.0.1:8080 }] }]
`
  const imported = async (policies: string, ...options: string[]) => {
    const { code, findings, manifests } = await runImport(route(policies), ...options)
    const documents = parseAllDocuments(manifests['policies.yaml'] ?? '')
    return { code, findings, policies: documents.map((one) => one.toJS()) }
  }

  it('reports a pattern of guards that Sluice does not know', async () => {
    const guard = (rules: string) =>
      `{ ai: { promptGuard: { request: [{ regex: { action: mask, rules: ${rules} } }] } } }`
    const alone = await imported(guard('[{ builtin: passport }]'), '--allow-loss')
    expect(alone.findings.map(({ kind, reason }) => `${kind}: ${reason}`)).toContain(
      'protection: no built-in pattern has the name passport',
    )
    expect(JSON.stringify(alone.policies)).not.toContain('promptGuard')
    const { code } = await imported(guard('[{ builtin: passport }, { builtin: email }]'))
    expect(code).not.toBe(0)
  })

  it('keeps a bucket that is smaller than its refill', async () => {
    const { policies } = await imported(
      '{ localRateLimit: [{ maxTokens: 3, tokensPerFill: 100, fillInterval: 1m }] }',
    )
    expect(policies[0]?.spec.traffic.rateLimit.local).toEqual([{ requests: 3, unit: 'Minutes' }])
  })
})
