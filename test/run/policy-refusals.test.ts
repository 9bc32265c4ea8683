/** The metric of refusals names the policy, its field and the route, whichever part of the proxy refuses. */
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, budget, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { json } from '../support/vendors/vendor.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'

const deny = (expression: string) => ({
  authorization: { action: 'Deny', policy: { matchExpressions: [expression] } },
})
const secretRef = { name: 'keys' }
const request = [{ regex: { action: 'Reject', builtins: ['Email'] } }]

/** The settings of each route by its name. */
const policies: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  keys: { traffic: { apiKeyAuthentication: { secretRef } } },
  denied: { traffic: deny('request.method == "POST"') },
  rate: { traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } } },
  tokens: { traffic: { rateLimit: { local: [{ tokens: 20, unit: 'Hours' }] } } },
  guarded: { backend: { ai: { promptGuard: { request } } } },
}

describe('sluice_policy_refusals_total', async () => {
  const [port, stats] = [await freePort(), await freePort()]
  const vendor = useFixture(startVendorA)
  const running = useGateway(() => {
    const provider = { vendorA: {}, host: '127.0.0.1', port: vendor.port }
    vendor.answer = ({ body }, response) =>
      json(response, 200, {
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: body.model,
        choices: [
          { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 1_000, completion_tokens: 1, total_tokens: 1_001 },
      })
    return {
      manifests: [
        gateway(port),
        secret('keys', { ann: 'key-of-ann' }),
        ...[...Object.keys(policies), 'spent', 'open'].flatMap((name) => [
          routeByPath(name),
          aiBackend(name, { provider }),
        ]),
        ...Object.entries(policies).map(([name, spec]) => policy(name, `HTTPRoute/${name}`, spec)),
        budget('spent', 'HTTPRoute/spent', {
          limit: { unit: 'Tokens', amount: '10' },
          window: { unit: 'Month' },
        }),
        policy('early', 'Gateway/edge', {
          traffic: { phase: 'PreRouting', ...deny('request.headers["x-early"] == "1"') },
        }),
      ],
      args: ['--stats-address', `127.0.0.1:${stats}`],
    }
  })

  const ask = async (name: string, headers: Record<string, string> = {}) => {
    const { status } = await running.send(port, {
      path: `/${name}/v1/chat/completions`,
      method: 'POST',
      headers,
      body: JSON.stringify({
        model: 'm',
        messages: [{ role: 'user', content: 'write to a@example.com' }],
      }),
    })
    return status
  }

  const refusals = async () =>
    (await (await fetch(`http://127.0.0.1:${stats}/metrics`)).text())
      .split('\n')
      .filter((line) => line.startsWith('sluice_policy_refusals_total{'))
      .sort()

  it('counts refusals in all phases and by backends, and no others', async () => {
    expect(await ask('open')).toBe(200)
    expect(await ask('missing')).toBe(404)
    expect(await ask('open', { 'x-early': '1' })).toBe(403)
    expect(await ask('keys')).toBe(401)
    expect(await ask('denied')).toBe(403)
    expect([await ask('rate'), await ask('rate')]).toEqual([200, 429])
    expect([await ask('tokens'), await ask('tokens')]).toEqual([200, 429])
    expect(await ask('spent')).toBe(429)
    expect(await ask('guarded')).toBe(403)
    const line = (policy: string, field: string, route: string) =>
      `sluice_policy_refusals_total{policy="${policy}",field="${field}",route="${route}"} 1`
    expect(await refusals()).toEqual(
      [
        line('GatewayPolicy default/early', 'traffic.authorization', 'unknown'),
        line('GatewayPolicy default/keys', 'traffic.apiKeyAuthentication', 'default/keys'),
        line('GatewayPolicy default/denied', 'traffic.authorization', 'default/denied'),
        line('GatewayPolicy default/rate', 'traffic.rateLimit', 'default/rate'),
        line('GatewayPolicy default/tokens', 'traffic.rateLimit', 'default/tokens'),
        line('GatewayBudget default/spent', 'traffic.budgets', 'default/spent'),
        line('GatewayPolicy default/guarded', 'backend.ai', 'default/guarded'),
      ].sort(),
    )
  })
})
