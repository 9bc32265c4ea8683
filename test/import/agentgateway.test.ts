import { describe, expect, it } from 'vitest'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { answerAs } from './model-upstream.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const shop = useUpstream('shop')
const model = useUpstream('model', answerAs('model'))

const objects = () => `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: edge-class, uid: abc, resourceVersion: "5" }
spec: { controllerName: agentgateway.dev/agentgateway }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge }
spec:
  gatewayClassName: edge-class
  listeners: [{ name: http, port: ${port}, protocol: HTTP }]
---
apiVersion: agentgateway.dev/v1alpha1
kind: AgentgatewayBackend
metadata: { name: shop }
spec: { static: { host: 127.0.0.1, port: ${shop.port} } }
---
apiVersion: agentgateway.dev/v1alpha1
kind: AgentgatewayBackend
metadata: { name: model }
spec:
  ai:
    groups:
    - providers:
      - { name: local, openai: { model: gpt-4o }, host: 127.0.0.1, port: ${model.port} }
  policies:
    ai:
      promptGuard:
        request: [{ regex: { builtins: [Email] } }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: all }
spec:
  parentRefs: [{ name: edge }]
  rules:
  - matches: [{ path: { type: PathPrefix, value: /v1 } }]
    backendRefs: [{ group: agentgateway.dev, kind: AgentgatewayBackend, name: model }]
  - backendRefs: [{ group: agentgateway.dev, kind: AgentgatewayBackend, name: shop }]
---
apiVersion: v1
kind: Secret
metadata: { name: keys }
stringData: { ann: key-of-ann }
---
apiVersion: agentgateway.dev/v1alpha1
kind: AgentgatewayPolicy
metadata: { name: keys }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: all }]
  traffic:
    apiKeyAuthentication: { secretRef: { name: keys } }
    rateLimit: { local: [{ requests: 3, unit: Hours }] }
    headerModifiers: { request: { set: [{ name: x-edge, value: "1" }] } }
`

describe("sluice import of agentgateway's Kubernetes resources", () => {
  const { gateway, imported } = useImport(() => ({ content: objects() }))
  const authorization = { authorization: 'Bearer key-of-ann' }

  it('finds the source by its API group, loses nothing, and the result is valid', () => {
    expect(imported()).toMatchObject({ code: 0, findings: [], validation: { code: 0 } })
    expect(imported().stderr).toContain('agentgateway: ')
  })

  it('keeps servers with their own formats and paths', async () => {
    const backend = (name: string, provider: string) =>
      `apiVersion: agentgateway.dev/v1alpha1\nkind: AgentgatewayBackend\nmetadata: { name: ${name} }\nspec: { ai: { provider: ${provider} } }\n`
    const formats = '[{ type: Completions }, { type: AnthropicTokenCount, path: /count }]'
    const result = await runImport(
      [
        backend('own', `{ custom: { formats: ${formats} }, host: a.example, port: 80 }`),
        backend('below', '{ openai: {}, host: a.example, pathPrefix: /openai/v1 }'),
        backend('foundry', '{ azure: { resourceName: r, resourceType: Foundry, projectName: p } }'),
      ].join('---\n'),
    )
    expect(result).toMatchObject({ code: 0, findings: [], validation: { code: 0 } })
    const written = Object.values(result.manifests).join()
    expect(written).toContain('type: VendorCTokenCount')
    expect(written).toContain('pathPrefix: /openai/v1')
  })

  it('keeps models by name, their guards and virtual models', async () => {
    const served = (name: string, spec: string) =>
      `apiVersion: agentgateway.dev/v1alpha1\nkind: AgentgatewayModel\nmetadata: { name: ${name} }\nspec: { parentRefs: [{ kind: HTTPRoute, name: models }], ${spec} }\n`
    const guard = 'promptGuard: { request: [{ regex: { builtins: [Email] } }] }'
    const targets = '[{ modelRef: { name: gpt }, model: gpt-5 }]'
    const result = await runImport(
      [
        served('gpt', `match: { model: gpt-* }, provider: OpenAI, policies: { ${guard} }`),
        served(
          'count',
          'provider: Custom, baseURL: "http://a.example/v1", custom: { formats: [{ type: AnthropicTokenCount }] }',
        ),
        served('smart', `virtualModel: { failover: { targets: ${targets} } }`),
        `apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: models }\nspec: { rules: [{ backendRefs: [{ group: agentgateway.dev, kind: AgentgatewayModel, name: "*" }] }] }\n`,
      ].join('---\n'),
    )
    expect(result).toMatchObject({ code: 0, findings: [] })
    const written = Object.values(result.manifests).join()
    expect(written).toContain('apiVersion: sluice.dev/v1alpha1\nkind: AgentgatewayModel')
    expect(written).toMatch(/policies:\s+ai:\s+promptGuard:/)
    expect(written).toContain('type: VendorCTokenCount')
    expect(written).toMatch(/group: sluice.dev\s+kind: AgentgatewayModel\s+name: "\*"/)
  })

  it('keeps authentication, routes, header changes, guards and limits', async () => {
    const refused = await gateway.send(port)
    expect(refused.status).toBe(401)
    const page = await gateway.send(port, { headers: authorization })
    expect(JSON.parse(page.body)).toMatchObject({ upstream: 'shop', headers: { 'x-edge': '1' } })
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'I am ann@example.com' }] })
    const path = '/v1/chat/completions'
    const chat = await gateway.send(port, { method: 'POST', path, headers: authorization, body })
    expect(chat.body).toContain('<EMAIL_ADDRESS>')
    expect(model.received.at(-1)?.body).toContain('gpt-4o')
    await gateway.send(port, { headers: authorization })
    expect((await gateway.send(port, { headers: authorization })).status).toBe(429)
  })
})

describe('newer fields of agentgateway', () => {
  const newer = `apiVersion: agentgateway.dev/v1alpha1
kind: AgentgatewayBackend
metadata: { name: tools }
spec:
  mcp:
    newSetting: Never
    prefixMode: Conditional
    targets: [{ name: a, static: { host: example.com, port: 443 } }]
`
  const guarded = `${newer}  policies:
    auth: { vault: {} }
`

  it('are reported with their line, and the rest is converted', async () => {
    const result = await runImport(newer)
    expect(result.code).toBe(0)
    expect(result.findings).toMatchObject([
      { kind: 'lost', line: 6, object: 'AgentgatewayBackend tools', field: 'spec.mcp.newSetting' },
    ])
    expect(result.manifests['backends.yaml']).toContain('kind: GatewayBackend')
    // Sluice's mode Conditional is about each name, not about the number of targets.
    expect(result.manifests['backends.yaml']).toContain('prefixMode: Always')
  })

  it('keeps agents (A2A)', async () => {
    const agent = `apiVersion: agentgateway.dev/v1alpha1
kind: AgentgatewayBackend
metadata: { name: agent }
spec: { a2a: { host: agent.example.com, port: 443 } }
`
    const result = await runImport(agent)
    expect(result).toMatchObject({ code: 0, findings: [], validation: { code: 0 } })
    expect(result.manifests['backends.yaml']).toMatch(/a2a:\s+host: agent.example.com/)
  })

  it('that protect something stop the conversion unless --allow-loss is given', async () => {
    const refused = await runImport(guarded)
    expect(refused).toMatchObject({ code: 3, manifests: {} })
    expect(outline(refused)).toContain('protection: spec.policies.auth.vault')
    const allowed = await runImport(guarded, '--allow-loss')
    expect(allowed).toMatchObject({ code: 0, validation: { code: 0 } })
  })
})
