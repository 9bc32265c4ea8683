import { describe, expect, it } from 'vitest'
import { runImport } from './rig.ts'

const ingress = (annotations: string) => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: app, annotations: { ${annotations} } }
spec:
  rules:
    - http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: app, port: { number: 80 } } } }] }
`
const kong = (plugin: string) => `
_format_version: "3.0"
services:
  - name: app
    url: http://localhost:32000
    routes: [{ name: app, paths: [/a], plugins: [${plugin}] }]
`
const envoy = (rule: string, type = 'Local') => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: app }
spec: { parentRefs: [{ name: g }], rules: [{ backendRefs: [{ name: app, port: 80 }] }] }
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: app }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: app }]
  rateLimit: { type: ${type}, ${type.toLowerCase()}: { rules: [${rule}] } }
`
const agentgateway = (limit: string) => `
binds:
  - port: 3000
    listeners:
      - routes: [{ policies: { localRateLimit: [${limit}] }, backends: [{ host: 127.0.0.1:8080 }] }]
`

const perUser =
  '{ clientSelectors: [{ headers: [{ name: x-user, type: Distinct }] }], limit: { requests: 3, unit: Hour } }'

describe('a limit that would refuse requests which the source lets pass', () => {
  it.each([
    [
      'nginx: addresses that are exempt',
      ingress('nginx.ingress.kubernetes.io/limit-whitelist: 10.0.0.0/8'),
    ],
    ['Kong: per path', kong('{ name: rate-limiting, config: { hour: 6, limit_by: path } }')],
    ['Kong: a year', kong('{ name: rate-limiting, config: { year: 72000, limit_by: service } }')],
    [
      'Kong: tokens of several providers',
      kong(
        '{ name: ai-rate-limiting-advanced, config: { llm_providers: [{ name: openai, limit: 9, window_size: 60 }, { name: mistral, limit: 9, window_size: 60 }] } }',
      ),
    ],
    ['Envoy Gateway: per header value', envoy(perUser)],
    [
      'agentgateway: two days',
      agentgateway('{ maxTokens: 48, tokensPerFill: 48, fillInterval: 48h }'),
    ],
  ])('is written with --allow-stricter only (%s)', async (_, source) => {
    const refused = await runImport(source)
    expect(refused.findings.map(({ kind }) => kind)).toContain('stricter')
    expect(refused.findings.map(({ kind }) => kind)).not.toContain('protection')
    expect(refused.code).toBe(6)
    expect(refused.manifests).toEqual({})
    expect(refused.stderr).toMatch(/\d stricter/)
    expect(refused.stderr).toContain('--allow-stricter')
    for (const option of ['--allow-stricter', '--allow-loss']) {
      const allowed = await runImport(source, option)
      expect(allowed.code).toBe(0)
      expect(allowed.manifests['routes.yaml']).toContain('kind: HTTPRoute')
    }
  })

  it.each([
    ['nginx: per address', ingress('nginx.ingress.kubernetes.io/limit-rps: "10"')],
    ['nginx: per minute', ingress('nginx.ingress.kubernetes.io/limit-rpm: "10"')],
    [
      'Kong: per address',
      kong(
        '{ name: rate-limiting-advanced, config: { limit: [5], window_size: [60], identifier: ip } }',
      ),
    ],
    [
      'Envoy Gateway: per address',
      envoy(
        '{ clientSelectors: [{ sourceCIDR: { type: Distinct, value: 0.0.0.0/0 } }], limit: { requests: 3, unit: Hour } }',
      ),
    ],
  ])('counts each address as the source does (%s)', async (_, source) => {
    const { code, findings, manifests } = await runImport(source)
    expect(findings.map(({ kind }) => kind)).not.toContain('stricter')
    expect(code).toBe(0)
    expect(Object.values(manifests).join('\n')).toContain('key: source.address')
  })

  it.each([
    ['Envoy Gateway', envoy('{ limit: { requests: 48, unit: Day } }')],
    ['agentgateway', agentgateway('{ maxTokens: 48, tokensPerFill: 48, fillInterval: 24h }')],
  ])('keeps a limit for a day as it is (%s)', async (_, source) => {
    const { code, manifests } = await runImport(source)
    expect(code).toBe(0)
    expect(Object.values(manifests).join('\n')).toMatch(/requests: 48\n\s+unit: Days/)
  })

  it('differs from one that lets more requests pass, which needs --allow-looser', async () => {
    const source = envoy(perUser, 'Global')
    const refused = await runImport(source, '--allow-stricter')
    expect(refused).toMatchObject({ code: 5, manifests: {} })
    expect(refused.findings).toContainEqual(
      expect.objectContaining({ kind: 'looser', reason: 'each proxy keeps its own limit' }),
    )
    const both = await runImport(source)
    expect(both.code).toBe(5)
    expect(both.stderr).toContain('use --allow-looser --allow-stricter.')
    const allowed = await runImport(source, '--allow-looser', '--allow-stricter')
    expect(allowed.code).toBe(0)
  })

  it('does not excuse lost protections', async () => {
    const annotations =
      'nginx.ingress.kubernetes.io/limit-rps: "10", nginx.ingress.kubernetes.io/limit-connections: "2"'
    const { code, stderr } = await runImport(ingress(annotations), '--allow-stricter')
    expect(code).toBe(3)
    expect(stderr).toContain('protections would be lost')
  })

  it.each([
    kong('{ name: rate-limiting, config: { minute: 60, limit_by: service } }'),
    envoy('{ limit: { requests: 3, unit: Hour } }'),
    agentgateway('{ maxTokens: 9, tokensPerFill: 3, fillInterval: 1m }'),
  ])('is not reported for limits that are converted as they are (%#)', async (source) => {
    const { code, findings } = await runImport(source)
    expect(findings.map(({ kind }) => kind)).not.toContain('stricter')
    expect(code).toBe(0)
  })
})
