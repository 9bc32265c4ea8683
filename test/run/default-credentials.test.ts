/** Backends without `auth` whose vendors take credentials of the cloud that the gateway runs in. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { serviceAccountOf, startTokenServer, type TokenServer } from '../support/token-server.ts'
import { type Fleet, reached, routes, signingKeys, startFleet } from '../support/vendors/fleet.ts'
import { waitFor } from '../support/wait-for.ts'

let tokens: TokenServer
let folder: string
let fleet: Fleet
let without: Fleet

const ai = { ai: { routes }, auth: undefined }

const backends: Parameters<typeof startFleet>[0] = ({ at, region }) => [
  reached('b', { vendorB: { endpoint: 'unused.example' }, ...at('b') }, ai),
  reached('b-keyed', { vendorB: { endpoint: 'unused.example' }, ...at('b') }),
  reached('b-elsewhere', { vendorB: { endpoint: 'vendor.invalid' } }, ai),
  reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }, ai),
  reached('e-own', { vendorE: { projectId: 'my-project', region: 'none' } }, ai),
  reached('f', { vendorF: { region }, ...at('f') }, ai),
  reached('f-keyed', { vendorF: { region }, ...at('f') }),
  reached('f-empty', { vendorF: { region }, ...at('f') }, { ...ai, auth: { aws: {} } }),
  reached('f-own', { vendorF: { region } }, ai),
]

beforeAll(async () => {
  tokens = await startTokenServer()
  folder = mkdtempSync(join(tmpdir(), 'sluice-default-'))
  const account = join(folder, 'account.json')
  writeFileSync(account, JSON.stringify(serviceAccountOf(tokens.base)))
  const federated = join(folder, 'federated')
  writeFileSync(federated, 'of-the-cluster')
  const aws = { AWS_ACCESS_KEY_ID: '', AWS_PROFILE: '' }
  const nothing = { ...aws, HOME: folder, AWS_EC2_METADATA_DISABLED: 'true', NO_GCE_CHECK: 'true' }
  fleet = await startFleet(backends, {
    ...nothing,
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${tokens.base}/pod`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: 'pod-token',
    GOOGLE_APPLICATION_CREDENTIALS: account,
    AZURE_TENANT_ID: 'tenant',
    AZURE_CLIENT_ID: 'client',
    AZURE_AUTHORITY_HOST: tokens.base,
    AZURE_FEDERATED_TOKEN_FILE: federated,
  })
  without = await startFleet(backends, {
    ...nothing,
    AZURE_POD_IDENTITY_AUTHORITY_HOST: `${tokens.base}/nobody`,
  })
})

afterAll(async () => {
  await fleet.dispose()
  await without.dispose()
  await tokens.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  fleet.forget()
  without.forget()
})

const claude = 'anthropic.claude-sonnet-4-v1:0'
const messages = [{ role: 'user' as const, content: 'Hello' }]

async function ask(to: Fleet, name: string, model: string): Promise<string | null | undefined> {
  const client = new OpenAI({
    baseURL: `${to.base(name)}/v1`,
    apiKey: 'client-key',
    maxRetries: 0,
  })
  const answer = await client.chat.completions.create({ model, messages })
  return answer.choices[0]?.message.content
}

describe('default credentials', () => {
  it('[AwsAuth.default] sign requests to vendorF and are fetched once at start', async () => {
    const asked = () => tokens.calls.filter(({ path }) => path === '/pod').length
    expect(asked()).toBe(1)
    expect(await ask(fleet, 'f', claude)).toBe('Hello from F')
    const { authorization, ...headers } = fleet.lastCall('f')?.headers ?? {}
    expect(authorization).toContain(`Credential=${signingKeys.accessKeyId}/`)
    expect(headers['x-amz-security-token']).toBe('session-token')
    expect(await ask(fleet, 'f', claude)).toBe('Hello from F')
    expect(asked()).toBe(1)
  })

  it('sign requests if a policy sets aws without a Secret, and send none unsigned', async () => {
    expect(await ask(fleet, 'f-empty', claude)).toBe('Hello from F')
    const { authorization } = fleet.lastCall('f')?.headers ?? {}
    expect(authorization).toContain(`Credential=${signingKeys.accessKeyId}/`)
    await expect(ask(without, 'f-empty', claude)).rejects.toMatchObject({ status: 500 })
    expect(without.vendors.f.calls).toEqual([])
  })

  it('are a token of the service account for vendorE', async () => {
    expect(await ask(fleet, 'e', 'google/gemini-2.5-pro')).toBe('Hello from E')
    expect(fleet.lastCall('e')?.headers.authorization).toBe('Bearer of-the-account')
  })

  it('are a token of the workload for vendorB', async () => {
    expect(await ask(fleet, 'b', 'gpt-4o')).toBe('Hello from B')
    expect(fleet.lastCall('b')?.headers.authorization).toMatch(/^Bearer .*workload$/)
  })

  it('are used only if no policy sets a credential', async () => {
    await ask(fleet, 'f-keyed', claude)
    expect(fleet.lastCall('f')?.headers.authorization).toBe('Bearer gateway-key')
    await ask(fleet, 'b-keyed', 'gpt-4o')
    expect(fleet.lastCall('b')?.headers['api-key']).toBe('gateway-key')
  })

  it("refuse requests to a vendor's own host if they cannot be obtained", async () => {
    for (const name of ['f-own', 'e-own']) {
      await expect(ask(without, name, 'x')).rejects.toMatchObject({
        status: 500,
        message: expect.stringMatching(/backend authentication failed/),
      })
    }
    await waitFor('the line of the access log', () =>
      /no AWS credentials: neither the environment/.test(without.running.stdout),
    )
  })

  it('refuse all requests if they are configured but fail', async () => {
    await expect(ask(without, 'b', 'gpt-4o')).rejects.toMatchObject({ status: 500 })
    expect(without.vendors.b.calls).toEqual([])
  })

  it('send requests to other hosts without a credential if none is available', async () => {
    await expect(ask(without, 'f', claude)).rejects.toMatchObject({ status: 403 })
    expect(without.lastCall('f')?.headers.authorization).toBeUndefined()
  })

  it('are never sent to foreign hosts', async () => {
    // The name does not exist: what matters is that no token was asked to go there.
    await expect(ask(without, 'b-elsewhere', 'gpt-4o')).rejects.toMatchObject({ status: 503 })
  })
})
