/** MCPRoute and QuotaPolicy of Envoy AI Gateway (Agent Router), served after their conversion. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { describe, expect, it } from 'vitest'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { inSeconds, sign, signingKey } from '../support/identity-provider.ts'
import { connectClient } from '../support/mcp-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'
import { answerAs } from './model-upstream.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const quotaPort = await freePort()
const key = await signingKey('key-1')
const offer =
  (...names: readonly string[]) =>
  (server: McpServer) => {
    for (const name of names) {
      server.registerTool(name, { description: name }, () => ({
        content: [{ type: 'text', text: `${name} is done` }],
      }))
    }
  }
const tickets = useMcpServer({ offer: offer('list_tickets', 'get_ticket', 'delete_ticket') })
const wiki = useMcpServer({ offer: offer('search', 'edit', 'admin_purge') })

const backend = (name: string, at: number) => `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: { name: ${name} }
spec: { endpoints: [{ ip: { address: 127.0.0.1, port: ${at} } }] }
---`

const edge = () => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge }
spec:
  gatewayClassName: agentgateway
  listeners: [{ name: http, port: ${port}, protocol: HTTP }]
---`

const mcpRoute = (name: string, spec: string) => `
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: MCPRoute
metadata: { name: ${name} }
spec:
  parentRefs: [{ name: edge, kind: Gateway, group: gateway.networking.k8s.io }]
  path: /${name}
${spec}
---`

const servers = `
  backendRefs:
  - name: tickets
    group: gateway.envoyproxy.io
    kind: Backend
    toolSelector: { includeRegex: ["^(list|get|delete)_"], exclude: [delete_ticket] }
    securityPolicy: { apiKey: { secretRef: { name: tickets-key }, header: x-api-key } }
  - name: wiki
    group: gateway.envoyproxy.io
    kind: Backend
    toolSelector: { excludeRegex: ["^admin_"] }
    securityPolicy: { apiKey: { secretRef: { name: tickets-key } } }`

const objects = () =>
  [
    edge(),
    backend('tickets', tickets.port),
    backend('wiki', wiki.port),
    `
apiVersion: v1
kind: Secret
metadata: { name: tickets-key }
stringData: { apiKey: key-of-tickets }
---
apiVersion: v1
kind: Secret
metadata: { name: clients }
stringData: { ann: key-of-ann }
---`,
    mcpRoute('open', servers),
    mcpRoute(
      'keys',
      `${servers}
  securityPolicy:
    apiKeyAuth: { credentialRefs: [{ name: clients }], extractFrom: [{ headers: [authorization] }] }`,
    ),
    mcpRoute(
      'rules',
      `${servers}
  securityPolicy:
    oauth:
      issuer: https://issuer.example
      audiences: [tools]
      jwks: { localJWKS: { type: Inline, inline: '${JSON.stringify({ keys: [key.jwk] })}' } }
      protectedResourceMetadata:
        resource: https://gateway.example/rules
        scopesSupported: [read]
    authorization:
      defaultAction: Deny
      rules:
      - target: { tools: [{ backend: wiki, tool: search }] }
      - source: { jwt: { scopes: [write], claims: [{ name: team, values: [docs] }] } }
        target: { tools: [{ backend: wiki, tool: edit }, { backend: wiki, tool: admin_purge }] }`,
    ),
  ].join('')

describe('sluice import of MCPRoute', () => {
  const { gateway, imported } = useImport(() => ({ content: objects() }))
  const toolsOf = async (path: string, headers: Record<string, string> = {}) => {
    const client = await connectClient(port, path, {}, headers)
    try {
      return (await client.listTools()).tools.map(({ name }) => name).sort()
    } finally {
      await client.close()
    }
  }
  const bearer = async (claims: object) => ({
    authorization: `Bearer ${await sign(key, { iss: 'https://issuer.example', aud: 'tools', exp: inSeconds(300), ...claims })}`,
  })

  it('loses no protection, and reports that names of tools change', () => {
    expect(imported().findings.filter(({ kind }) => kind === 'protection')).toEqual([])
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(outline(imported())).toContain('changed: spec.backendRefs')
  })

  it('keeps what the selectors of tools choose, and the keys of servers', async () => {
    const chosen = ['tickets_get_ticket', 'tickets_list_tickets', 'wiki_edit', 'wiki_search']
    expect(await toolsOf('/open')).toEqual(chosen)
    expect(tickets.received.at(-1)?.headers['x-api-key']).toBe('key-of-tickets')
    expect(wiki.received.at(-1)?.headers.authorization).toBe('Bearer key-of-tickets')
    const client = await connectClient(port, '/open')
    await expect(client.callTool({ name: 'wiki_admin_purge', arguments: {} })).rejects.toThrow(
      'Unknown tool',
    )
    await client.close()
  })

  it('asks clients for their keys', async () => {
    expect((await gateway.send(port, { path: '/keys', method: 'POST' })).status).toBe(401)
    expect(await toolsOf('/keys', { authorization: 'Bearer key-of-ann' })).toHaveLength(4)
  })

  it('applies the rules about tokens and tools, and describes the resource', async () => {
    expect((await gateway.send(port, { path: '/rules', method: 'POST' })).status).toBe(401)
    const metadata = await gateway.send(port, {
      path: '/.well-known/oauth-protected-resource/rules',
    })
    expect(JSON.parse(metadata.body)).toMatchObject({
      resource: 'https://gateway.example/rules',
      authorization_servers: ['https://issuer.example'],
      scopes_supported: ['read'],
    })
    expect(await toolsOf('/rules', await bearer({}))).toEqual(['wiki_search'])
    const editor = { scope: 'read write', team: 'docs' }
    // The rule names admin_purge, but the selector of the server excludes it.
    expect(await toolsOf('/rules', await bearer(editor))).toEqual(['wiki_edit', 'wiki_search'])
    expect(await toolsOf('/rules', await bearer({ ...editor, team: 'sales' }))).toEqual([
      'wiki_search',
    ])
  })
})

describe('sluice import of QuotaPolicy', () => {
  const upstream = useUpstream('model', answerAs('model'))
  const { gateway, imported } = useImport(() => ({
    content: [
      edge().replace(String(port), String(quotaPort)),
      backend('model', upstream.port),
      `
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIServiceBackend
metadata: { name: model }
spec:
  schema: { name: OpenAI }
  backendRef: { group: gateway.envoyproxy.io, kind: Backend, name: model }
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIGatewayRoute
metadata: { name: chat }
spec:
  parentRefs: [{ name: edge }]
  rules: [{ backendRefs: [{ name: model }] }]
---
apiVersion: aigateway.envoyproxy.io/v1alpha1
kind: QuotaPolicy
metadata: { name: team }
spec:
  targetRefs: [{ group: aigateway.envoyproxy.io, kind: AIServiceBackend, name: model }]
  perModelQuotas:
  - modelName: limited
    rules:
    - clientSelectors: [{ headers: [{ name: x-team, type: Distinct }] }]
      quota: { tokens: 200, duration: 1h }
`,
    ].join(''),
  }))
  const ask = async (model: string, team: string) => {
    const body = JSON.stringify({
      model,
      max_tokens: 50,
      messages: [{ role: 'user', content: 'hi' }],
    })
    const headers = { 'content-type': 'application/json', 'x-team': team }
    const path = '/v1/chat/completions'
    return (await gateway.send(quotaPort, { method: 'POST', path, headers, body })).status
  }

  it('limits the tokens of each client of a model', async () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(await ask('limited', 'a')).toBe(200)
    await waitFor('the quota of a', async () => (await ask('limited', 'a')) === 429)
    expect(await ask('limited', 'b')).toBe(200)
    expect(await ask('other', 'a')).toBe(200)
  })
})

describe('what has no counterpart', () => {
  it('is reported for an MCPRoute, and refuses what cannot be decided', async () => {
    const route = mcpRoute(
      'odd',
      `
  backendRefs:
  - { name: tickets, group: gateway.envoyproxy.io, kind: Backend, forwardHeaders: [{ name: x-user }] }
  securityPolicy:
    authorization:
      rules:
      - { cel: 'request.mcp.tool == "get_ticket"' }
      - { target: { tools: [{ backend: tickets, tool: get_ticket }] } }`,
    )
    const imported = await runImport(edge() + backend('tickets', 1) + route, '--allow-stricter')
    expect(outline(imported)).toEqual(
      expect.arrayContaining([
        'lost: spec.backendRefs[0].forwardHeaders',
        'stricter: spec.securityPolicy.authorization.rules[0].cel',
      ]),
    )
    expect(Object.values(imported.manifests).join('')).toContain('(false)')
  })

  it('is not converted if a budget could not hold it', async () => {
    const quota = `
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIGatewayRoute
metadata: { name: chat }
spec:
  parentRefs: [{ name: edge }]
  rules: [{ backendRefs: [{ name: one }, { name: two }] }]
---
apiVersion: aigateway.envoyproxy.io/v1alpha1
kind: QuotaPolicy
metadata: { name: quota }
spec:
  targetRefs: [{ group: aigateway.envoyproxy.io, kind: AIServiceBackend, name: one }]
  perModelQuotas: [{ rules: [{ quota: { tokens: 9, duration: 1h } }] }]
`
    const imported = await runImport(edge() + quota)
    expect(imported.code).toBe(3)
    expect(outline(imported)).toContain('protection: spec.perModelQuotas[0]')
  })

  it('is reported if no route among the files uses the backend of a quota', async () => {
    const quota = `
apiVersion: aigateway.envoyproxy.io/v1alpha1
kind: QuotaPolicy
metadata: { name: quota }
spec:
  targetRefs: [{ group: aigateway.envoyproxy.io, kind: AIServiceBackend, name: elsewhere }]
  perModelQuotas: [{ rules: [{ quota: { tokens: 9, duration: 1h } }] }]
`
    const imported = await runImport(edge() + quota)
    expect(imported.code).toBe(3)
    expect(outline(imported)).toContain('protection: spec.perModelQuotas[0]')
  })
})
