/** Users, MCP clients and keys of providers in a configuration file of agentgateway. */
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Imported, runImport } from './rig.ts'

const route = (policies: string, backends: string) => `
binds:
- port: 3000
  listeners:
  - routes:
    - name: app
      policies: ${policies}
      backends: [${backends}]
`
const tools = '{ mcp: { targets: [{ name: one, mcp: { host: "http://127.0.0.1:9/mcp" } }] } }'

interface Converted {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: Readonly<Record<string, never>>
}

const objectsOf = ({ manifests }: Imported) =>
  Object.values(manifests).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as Converted),
  )
const policyOf = (imported: Imported) =>
  objectsOf(imported).find(
    ({ kind, metadata }) => kind === 'GatewayPolicy' && metadata.name === 'app',
  )

function expectValid(imported: Imported) {
  expect(imported.findings.filter(({ kind }) => kind !== 'secret')).toEqual([])
  expect(imported.code).toBe(0)
  expect(imported.validation?.code).toBe(0)
}

describe('sluice import of the configuration file of agentgateway', () => {
  it.each([
    ['{ url: "https://id.test/keys" }', '/keys', 'IdpA', '{ auth0: {} }'],
    ['"https://id.test/keys"', '/keys', undefined, undefined],
    [undefined, '/realms/a/protocol/openid-connect/certs', 'IdpB', '{ keycloak: {} }'],
    [undefined, '/realms/a/v1/keys', 'Okta', '{ okta: {} }, clientId: app'],
    [undefined, '/realms/a/.well-known/jwks.json', undefined, undefined],
  ])('keeps mcpAuthentication (keys %s)', async (jwks, jwksPath, name, provider) => {
    const fields = [
      'issuer: "https://id.test/realms/a", audiences: [tools], mode: optional',
      'resourceMetadata: { resource: "https://gw.test/mcp", scopesSupported: [read] }',
      ...(jwks === undefined ? [] : [`jwks: ${jwks}`]),
      ...(provider === undefined ? [] : [`provider: ${provider}`]),
    ]
    const imported = await runImport(
      route(
        `{ mcpAuthentication: { ${fields.join(', ')} }, mcpAuthorization: { rules: ['mcp.tool.name == "a"'] } }`,
        tools,
      ),
    )
    expectValid(imported)
    expect(policyOf(imported)?.spec).toMatchObject({
      backend: {
        mcp: {
          authentication: {
            mode: 'Optional',
            issuer: 'https://id.test/realms/a',
            audiences: ['tools'],
            resourceMetadata: { resource: 'https://gw.test/mcp', scopesSupported: ['read'] },
            jwks: { jwksPath },
            ...(name !== undefined && { provider: name }),
            ...(name === 'Okta' && { clientId: 'app' }),
          },
          authorization: {
            action: 'Allow',
            policy: { matchExpressions: ['mcp.tool.name == "a"'] },
          },
        },
      },
    })
  })

  it('keeps rules about tools with several actions in one condition, since one policy has one action', async () => {
    const rules = `['mcp.tool.name == "a"', 'mcp.tool.name == "b"', { deny: 'jwt.sub == "x"' }, { require: 'has(jwt.sub)' }]`
    const imported = await runImport(route(`{ mcpAuthorization: { rules: ${rules} } }`, tools))
    expectValid(imported)
    const rest = '!(jwt.sub == "x") && (has(jwt.sub))'
    const condition = `((mcp.tool.name == "a") || (mcp.tool.name == "b")) && ${rest}`
    expect(policyOf(imported)?.spec).toMatchObject({
      backend: {
        mcp: { authorization: { action: 'Require', policy: { matchExpressions: [condition] } } },
      },
    })
  })

  it('keeps basicAuth, of a text or of a file', async () => {
    const users = 'ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g='
    const host = '{ host: "127.0.0.1:9" }'
    const inline = await runImport(route(`{ basicAuth: { htpasswd: "${users}", realm: r } }`, host))
    expectValid(inline)
    expect(inline.manifests['secrets.yaml']).toContain(users)
    expect(policyOf(inline)?.spec).toMatchObject({
      traffic: { basicAuthentication: { realm: 'r', secretRef: { name: 'app-passwords' } } },
    })
    const file = await runImport(route('{ basicAuth: { htpasswd: { file: ./users } } }', host))
    expect(file.code).toBe(0)
    expect(file.findings).toMatchObject([
      { kind: 'secret', reason: expect.stringContaining('./users') },
    ])
  })

  it.each(['backendAuth: { key: $KEY_N }', 'policies: { backendAuth: { key: $KEY_N } }'])(
    'keeps the key of each provider in a group (%s)',
    async (auth) => {
      const provider = (n: number) =>
        `{ name: p${n}, provider: { openAI: { model: m${n} } }, ${auth.replace('N', String(n))} }`
      const imported = await runImport(
        route('{}', `{ ai: { groups: [{ providers: [${provider(1)}, ${provider(2)}] }] } }`),
      )
      expectValid(imported)
      const secrets = imported.manifests['secrets.yaml'] ?? ''
      for (const n of [1, 2]) expect(secrets).toContain(`REPLACE_WITH_KEY_${n}`)
    },
  )
})
