import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { compareFields, generate } from '../../scripts/generators/agentgateway-fields.mjs'
import { runImport } from './rig.ts'

const page = 'docs/migrate/agentgateway-fields.md'

describe('the fields of agentgateway', () => {
  it('are all supported, or have an entry with the reason', () => {
    expect(compareFields().undecided).toEqual([])
    expect(readFileSync(page, 'utf8')).toBe(generate()[page])
  })

  it('are compared below lists, shared types and renamed fields, and by the values of enumerations', () => {
    const kinds = {
      AgentgatewayBackend: {
        ai: { provider: { openai: { model: true, invented: true }, novel: true } },
        mcp: { targets: { static: '#target' }, failureMode: ['FailClosed', 'FailSometimes'] },
      },
    }
    const { undecided } = compareFields({ kinds, types: { target: { port: true, portal: true } } })
    expect(undecided).toEqual([
      'AgentgatewayBackend.spec.ai.provider.openai.invented',
      'AgentgatewayBackend.spec.ai.provider.novel',
      'AgentgatewayBackend.spec.mcp.targets.0.static.portal',
      'AgentgatewayBackend.spec.mcp.failureMode: FailSometimes',
    ])
  })

  it('are removed without a line if their value is the default, and reported with a reason otherwise', async () => {
    const policy = (name: string, traffic: string) =>
      `apiVersion: agentgateway.dev/v1alpha1\nkind: AgentgatewayPolicy\nmetadata: { name: ${name} }\nspec:\n  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: r }]\n  traffic: ${traffic}\n`
    const secret = (kind: string) =>
      policy(
        `key-${kind.toLowerCase()}`,
        `{ apiKeyAuthentication: { secretRef: { name: k, group: "", kind: ${kind} } } }`,
      )
    const kept = await runImport(secret('Secret'))
    expect(kept).toMatchObject({ code: 0, findings: [] })
    const refused = await runImport(secret('Vault'))
    expect(refused.code).not.toBe(0)
    expect(refused.findings).toEqual([
      expect.objectContaining({
        kind: 'protection',
        field: 'spec.traffic.apiKeyAuthentication.secretRef.kind',
        reason: expect.stringContaining('a credential is always a Secret'),
      }),
    ])
  })
})
