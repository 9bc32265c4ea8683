/** What `sluice validate` says about names of other products. */
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { launcher } from '../support/gateway.ts'
import { aiBackend, gateway, manifest, mcpBackend } from '../support/manifests.ts'

function validate(...objects: Readonly<Record<string, unknown>>[]) {
  const input = manifest(...objects)
  const spawned = spawnSync(launcher, ['validate', '-f', '-'], { input, encoding: 'utf8' })
  return { code: spawned.status, text: `${spawned.stdout}${spawned.stderr}` }
}

const object = (apiVersion: string, kind: string) => ({ apiVersion, kind, metadata: { name: 'a' } })

describe('a provider with the name of a product', () => {
  it.each([
    ['openai', 'OpenAI is vendorA'],
    ['azureopenai', 'Azure OpenAI is vendorB'],
    ['azure_openai', 'Azure OpenAI is vendorB'],
    ['Anthropic', 'Anthropic is vendorC'],
    ['gemini', 'Gemini is vendorD'],
    ['vertexAI', 'Vertex AI is vendorE'],
    ['bedrock', 'Amazon Bedrock is vendorF'],
    ['together', 'Together AI is togetherai'],
    ['grok', 'xAI is xai'],
  ])('is refused with the neutral name: %s', (name, hint) => {
    const alone = validate(aiBackend('a', { provider: { [name]: {} } }))
    const grouped = validate(
      aiBackend('a', { groups: [{ providers: [{ name: 'x', [name]: {} }] }] }),
    )
    for (const { code, text } of [alone, grouped]) {
      expect(code).toBe(1)
      expect(text).toContain(`.${name}: unknown field; `)
      expect(text).toContain(hint)
    }
  })

  it('gets no hint if it is a name of the language', () => {
    const { text } = validate(aiBackend('a', { provider: { constructor: {} } }))
    expect(text).toContain('.constructor: unknown field\n')
  })
})

describe('a target of MCP that is no server over HTTP', () => {
  it.each([['openapi', 'move host, port and openapi under static']])(
    'is refused with what to write instead: %s',
    (field, hint) => {
      const { code, text } = validate(mcpBackend('a', [{ name: 'x', [field]: {} }]))
      expect(code).toBe(1)
      expect(text).toContain(hint)
    },
  )
})

describe('a kind that is not read', () => {
  it.each([
    ['agentgateway.dev/v1alpha1', 'AgentgatewayBackend', 'sluice import --from agentgateway'],
    ['gateway.envoyproxy.io/v1alpha1', 'BackendTrafficPolicy', 'import --from envoy-gateway'],
    ['sluice.io/v1alpha1', 'GatewayPolicy', 'did you mean apiVersion: sluice.dev/v1alpha1?'],
    ['sluice/v1', 'GatewayBackend', 'did you mean apiVersion: sluice.dev/v1alpha1?'],
    ['gateway.network.k8s.io/v1', 'HTTPRoute', 'apiVersion: gateway.networking.k8s.io/v1?'],
  ])('is named with what to do if it was meant for a gateway: %s %s', (version, kind, hint) => {
    const { code, text } = validate(object(version, kind))
    expect(code).toBe(0)
    expect(text).toContain(`warning: ${kind} a: kind: ${version} ${kind} is not read`)
    expect(text).toContain(hint)
  })

  it('is only counted otherwise', () => {
    const { text } = validate(object('networking.istio.io/v1', 'Gateway'), object('apps/v1', 'Job'))
    expect(text).toContain('skipped 2 objects of kinds that Sluice does not read')
  })
})

describe('a GatewayClass that is not in the files', () => {
  it('gets the name of the class that always exists if that was probably meant', () => {
    const named = (gatewayClassName: string) => validate(gateway(8080, { gatewayClassName })).text
    expect(named('sluice')).toContain('; the class that needs no manifest is agentgateway')
    expect(named('agentgatway')).toContain('; the class that needs no manifest is agentgateway')
    expect(named('istio')).toContain('GatewayClass istio is not in these files\n')
  })
})
