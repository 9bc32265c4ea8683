import { describe, expect, it } from 'vitest'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { runImport, useImport } from './rig.ts'

const secretsOf = (manifests: Readonly<Record<string, string>>) => manifests['secrets.yaml'] ?? ''

describe('credentials of several deployments', () => {
  it('get a Secret each from Kong if their values differ', async () => {
    const target = (provider: string, name: string, value: string) =>
      `{ route_type: llm/v1/chat, auth: { header_name: Authorization, header_value: "${value}" }, model: { provider: ${provider}, name: ${name} } }`
    const imported = await runImport(`
_format_version: "3.0"
services:
  - name: ai
    url: http://localhost:32000
    routes:
      - name: ai
        paths: [/ai]
        plugins:
          - name: ai-proxy-advanced
            config:
              targets:
                - ${target('anthropic', 'c', 'key-of-one')}
                - ${target('openai', 'a', 'Bearer key-of-two')}
                - ${target('openai', 'b', 'Bearer key-of-two')}
`)
    expect(imported.code).toBe(0)
    const secrets = secretsOf(imported.manifests)
    expect(secrets.match(/key-of-one/g)).toHaveLength(1)
    expect(secrets.match(/key-of-two/g)).toHaveLength(1)
    const backends = imported.manifests['backends.yaml'] ?? ''
    expect(backends.match(/name: ai-key$/gm)).toHaveLength(1)
    expect(backends.match(/name: ai-key-2$/gm)).toHaveLength(2)
  })

  it('get a Secret each from LiteLLM, for variables, values and keys of AWS', async () => {
    const azure = (region: string) =>
      `  - { model_name: m, litellm_params: { model: azure/m, api_base: "https://${region}.openai.azure.com", api_version: "2024-10-21", api_key: os.environ/KEY_${region} } }`
    const aws = (key: string) =>
      `  - { model_name: b, litellm_params: { model: bedrock/b, aws_region_name: us-east-1, aws_access_key_id: ${key}, aws_secret_access_key: secret-of-${key} } }`
    const imported = await runImport(
      ['model_list:', azure('EU'), azure('US'), aws('one'), aws('two')].join('\n'),
    )
    expect(imported.code).toBe(0)
    const secrets = secretsOf(imported.manifests)
    for (const text of ['KEY_EU', 'KEY_US', 'secret-of-one', 'secret-of-two']) {
      expect(secrets).toContain(text)
    }
  })
})

describe('routes of a source', () => {
  it('become a rule for each match if they replace a prefix', async () => {
    const imported = await runImport(`
_format_version: "3.0"
services:
  - name: orders
    url: http://localhost:32000
    routes: [{ name: orders, paths: [/orders], methods: [GET, POST] }]
`)
    expect(imported.code).toBe(0)
    const routes = imported.manifests['routes.yaml'] ?? ''
    expect(routes.match(/replacePrefixMatch/gi)?.length).toBeGreaterThanOrEqual(2)
    expect(routes).toContain('method: GET')
    expect(routes).toContain('method: POST')
  })

  it('end the import with 4 if one of them is lost', async () => {
    const imported = await runImport(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: app }
spec:
  rules:
    - http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: app, port: { name: web } } } }] }
`)
    expect(imported.code).toBe(4)
    expect(imported.findings.map(({ kind }) => kind)).toContain('route')
    expect(imported.manifests).toEqual({})
  })
})

const port = await freePort()
const app = useUpstream('app')
const served = useImport(() => ({
  args: ['--port', String(port)],
  content: `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: app, annotations: { nginx.ingress.kubernetes.io/custom-headers: "" } }
spec:
  rules:
    - http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: app, port: { number: 80 } } } }] }
---
apiVersion: v1
kind: Service
metadata: { name: app }
spec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: app-1, labels: { kubernetes.io/service-name: app } }
addressType: IPv4
ports: [{ port: ${app.port} }]
endpoints: [{ addresses: [127.0.0.1], conditions: { ready: true } }]
`,
}))

describe('headers that tell who the client is', () => {
  it('are set as nginx sets them, whatever the client sends', async () => {
    const forged = {
      'x-forwarded-for': '1.2.3.4',
      'x-real-ip': '1.2.3.4',
      'x-forwarded-proto': 'https',
    }
    const { status, body } = await served.gateway.send(port, { headers: forged, host: 'a.test' })
    expect(status).toBe(200)
    expect(JSON.parse(body).headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-real-ip': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'a.test',
      'x-forwarded-port': String(port),
    })
  })
})
