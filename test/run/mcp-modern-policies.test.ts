/** Policies for clients of revision 2026-07-28: one implementation serves all revisions. */
import { describe, expect, it } from 'vitest'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { startOAuthServer } from '../support/oauth-server.ts'
import { startRateLimitServer } from '../support/rate-limit-server.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = useFolder('sluice-modern-policies-')
const modern = useModernServer()
const legacy = useFixture(() => startMcpItemsServer({ tools: ['echo', 'delete'] }))
const idp = useFixture(() => startOAuthServer({ kind: 'IdpB' }))
const limits = useFixture(startRateLimitServer)
const port = await freePort()

const target = (name: string, server: { readonly port: number }) => ({
  name,
  static: { host: '127.0.0.1', port: server.port },
})
const served = (name: string, server: { readonly port: number }, mcp: object = {}) => [
  // The legacy server keeps sessions, which modern clients do not have.
  mcpBackend(
    name,
    [target('only', server)],
    name === 'legacy' ? { sessionRouting: 'Stateless' } : {},
  ),
  routeByPath(name),
  policy(name, `GatewayBackend/${name}`, { backend: { mcp } }),
]
const authorization = (...matchExpressions: string[]) => ({
  authorization: { action: 'Allow', policy: { matchExpressions } },
})

const running = useGateway(() => {
  const authentication = {
    issuer: idp.issuer,
    jwks: { jwksPath: idp.keysPath, backendRef: toBackend('idp') },
    resourceMetadata: { scopesSupported: ['read'] },
  }
  const onlyEcho = authorization('mcp.tool.name == "echo"')
  return {
    manifests: [
      gateway(port),
      staticBackend('idp', idp.port),
      staticBackend('limits', limits.port),
      ...served('secured', modern, {
        authentication,
        ...authorization('jwt.group == "sales"'),
      }),
      ...served('modern', modern, onlyEcho),
      ...served('legacy', legacy, onlyEcho),
      ...served('counted', modern, authorization('true')),
      policy('counted-local', 'HTTPRoute/counted', {
        traffic: { rateLimit: { local: [{ requests: 2, unit: 'Hours' }] } },
      }),
      ...served('by-tool', modern, authorization('true')),
      policy('by-tool-global', 'HTTPRoute/by-tool', {
        traffic: {
          rateLimit: {
            global: {
              domain: 'tools',
              backendRef: toBackend('limits'),
              descriptors: [
                { entries: [{ name: 'tool', expression: 'request.headers["mcp-name"]' }] },
              ],
            },
          },
        },
      }),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

const at = (path: string) => `http://127.0.0.1:${port}/${path}`
const call = (name: string) => modernRequest('tools/call', { name, arguments: {} })
const bearer = async (group: string) => ({
  authorization: `Bearer ${await idp.token({ group })}`,
})

describe('authentication of modern requests', () => {
  it('points to the protected-resource metadata if a request has no token', async () => {
    const before = modern.asked.length
    for (const message of [call('echo'), modernRequest('server/discover')]) {
      const { status, headers } = await sendModern(at('secured'), message)
      expect(status).toBe(401)
      const [, metadata = ''] =
        /^Bearer resource_metadata="([^"]*)", scope="read"$/.exec(
          headers.get('www-authenticate') ?? '',
        ) ?? []
      const response = await fetch(metadata)
      expect(await response.json()).toMatchObject({
        resource: at('secured'),
        scopes_supported: ['read'],
      })
    }
    expect(modern.asked.length).toBe(before)
  })

  it('rejects an invalid token', async () => {
    const headers = { authorization: `${(await bearer('sales')).authorization}x` }
    expect((await sendModern(at('secured'), call('echo'), { headers })).status).toBe(401)
  })

  it('makes the claims of a token available to authorization', async () => {
    const headers = await bearer('sales')
    const allowed = await sendModern(at('secured'), call('echo'), { headers })
    expect(allowed.message).toHaveProperty('result')
    const refused = await sendModern(at('secured'), call('echo'), {
      headers: await bearer('other'),
    })
    expect(refused.message).toMatchObject({ error: { code: -32602 } })
  })
})

describe('authorization between eras', () => {
  it('hides and refuses tools of a legacy server from modern clients', async () => {
    const list = await sendModern(at('legacy'), modernRequest('tools/list'))
    expect(list.message?.result).toMatchObject({ tools: [{ name: 'echo' }], cacheScope: 'private' })
    const before = legacy.uses.length
    const { message } = await sendModern(at('legacy'), call('delete'))
    expect(message).toMatchObject({ error: { code: -32602, message: 'Unknown tool: delete' } })
    expect(legacy.uses.length).toBe(before)
    expect((await sendModern(at('legacy'), call('echo'))).message).toHaveProperty('result')
  })

  it('refuses tools of a modern server to legacy clients', async () => {
    const client = await connectClient(port, '/modern')
    const before = modern.asked.length
    await expect(client.callTool({ name: 'delete' })).rejects.toMatchObject({ code: -32602 })
    expect(modern.asked.filter(({ method }) => method === 'tools/call').length).toBe(
      modern.asked.slice(0, before).filter(({ method }) => method === 'tools/call').length,
    )
    expect(await client.callTool({ name: 'echo' })).toHaveProperty('content')
    await client.close()
  })
})

describe('rate limits of modern requests', () => {
  it('apply to each request of a route', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 3; n++)
      statuses.push((await sendModern(at('counted'), call('echo'))).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  it('can have a limit for each tool, by the header that agrees with the body', async () => {
    limits.answer({ overallCode: 2 })
    expect((await sendModern(at('by-tool'), call('echo'))).status).toBe(429)
    limits.answer({ overallCode: 1 })
    expect((await sendModern(at('by-tool'), call('other'))).status).toBe(200)
    const tools = limits.asked.map(({ descriptors }) => descriptors[0]?.entries[0]?.value)
    expect(tools).toEqual(['echo', 'other'])
  })

  it('do not let a request through whose header names another tool', async () => {
    const before = modern.asked.length
    const headers = { 'mcp-name': 'other' }
    const { status, message } = await sendModern(at('by-tool'), call('echo'), { headers })
    expect(status).toBe(400)
    expect(message).toMatchObject({ error: { code: -32020 } })
    expect(modern.asked.length).toBe(before)
  })
})

describe('telemetry of modern requests', () => {
  it('has method, target and tool in the access log, and no session', async () => {
    await sendModern(at('modern/log-1'), call('echo'))
    const line = await waitFor('the line', () =>
      running.stdout.split('\n').find((one) => one.includes('log-1')),
    )
    expect(line).toContain('mcp.method.name=tools/call')
    expect(line).toContain('mcp.target=only')
    expect(line).toContain('gen_ai.tool.name=echo')
    expect(line).not.toContain('mcp.session.id')
  })

  it('has the code of a refusal in the access log', async () => {
    await sendModern(at('modern/log-2'), call('delete'))
    const line = await waitFor('the line', () =>
      running.stdout.split('\n').find((one) => one.includes('log-2')),
    )
    expect(line).toContain('mcp.error.code=-32602')
  })

  it('counts requests by method and result, without names from clients', async () => {
    const address = /metrics: (\S+)/.exec(running.stderr)?.[1] ?? ''
    const metrics = await (await fetch(address)).text()
    expect(metrics).toMatch(/sluice_mcp_requests_total\{[^}]*method="tools\/call"[^}]*\} \d+/)
    expect(metrics).not.toContain('delete')
  })

  it('names the rule that refuses a tool in the decision record', async () => {
    await sendModern(at('modern'), call('delete'), { headers: { 'x-request-id': 'record-1' } })
    await running.stop()
    expect(recordsIn(folder).get('record-1')).toMatchObject({
      steps: expect.arrayContaining([
        expect.objectContaining({ step: 'backend.mcp', verdict: 'answer' }),
      ]),
      details: { 'gen_ai.tool.name': 'delete' },
    })
  })
})
