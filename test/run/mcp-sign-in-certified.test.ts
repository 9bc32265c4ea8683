/** Signing in through the gateway with a certified OpenID provider behind it. */
import { expect, it } from 'vitest'
import { startCertifiedProvider } from '../support/certified-provider.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, staticBackend } from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { signInWithSdk } from '../support/mcp-sdks.ts'
import { browse, redirect, SignIn } from '../support/mcp-sign-in.ts'
import { audience, guardedServer, SignInRequests, visit } from '../support/mcp-sign-in-requests.ts'
import { describeWithParts } from '../support/parts.ts'

const server = useFixture(() => startMcpItemsServer({ tools: ['who'] }))
const provider = useFixture(() => startCertifiedProvider(audience))
const port = await freePort()
useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('idpa', provider.port),
    ...guardedServer('a', server.port, 'IdpA', provider, {
      resourceMetadata: { scopesSupported: ['tools'] },
    }),
  ],
}))
const at = new SignInRequests(port)
const scope = 'openid tools'

it('gets a code with the issuer of the gateway, and a token that the gateway accepts', async () => {
  const client_id = await at.newClient('/a', redirect)
  const response = (await browse(at.authorization('/a', { client_id, scope }))).searchParams
  expect(response.get('iss')).toBe(at.url('/a'))
  const fields = { client_id, redirect_uri: redirect, code: response.get('code') ?? '' }
  const { status, body } = await at.token('/a', fields)
  expect({ status, ...body }).toMatchObject({ status: 200, token_type: 'Bearer' })
  const headers = { authorization: `Bearer ${body.access_token}` }
  expect((await fetch(at.url('/a'), { headers })).status).not.toBe(401)
})

it.each([
  ['a redirect URI of another client', { redirect_uri: 'https://other.example.com/callback' }],
  ['an unknown client', { client_id: 'unknown' }],
])('does not redirect for %s', async (_, other) => {
  const client_id = await at.newClient('/a', redirect)
  const refused = await visit(at.authorization('/a', { client_id, scope, ...other }))
  expect(refused).toMatchObject({ status: 400, location: undefined })
  expect(refused.text).toContain('the provider does not accept this client_id')
})

describeWithParts(['mcp-sdks'], 'the SDK for TypeScript of generation 2', () => {
  it('signs in', async () => {
    const client = await signInWithSdk(at.url('/a'), new SignIn())
    const { content } = await client.callTool({ name: 'who', arguments: {} })
    expect(content).toEqual([{ type: 'text', text: 'who' }])
    await client.close()
  })
})
