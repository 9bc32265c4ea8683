import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  serviceAccountOf,
  startTokenServer,
  type TokenServer,
} from '../../../test/support/token-server.ts'
import type { Environment } from './access-token.ts'
import { entraTokens } from './entra/default-token.ts'
import { modelResource } from './entra/resources.ts'
import { applicationDefault } from './google/application-default.ts'

let server: TokenServer
let folder: string

beforeAll(async () => {
  server = await startTokenServer()
  folder = mkdtempSync(join(tmpdir(), 'sluice-tokens-'))
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  server.calls.length = 0
  server.isDown = false
})

function file(name: string, content: object | string): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('Google application default credentials', () => {
  const none: Environment = { HOME: '/nonexistent', NO_GCE_CHECK: 'true' }
  const token = async (env: Environment) =>
    (await applicationDefault({ ...none, ...env }).get())?.token
  const byFile = (name: string, content: object | string) =>
    token({ GOOGLE_APPLICATION_CREDENTIALS: file(name, content) })

  it('sign an assertion with the key of a service account', async () => {
    expect(await byFile('account', serviceAccountOf(server.base))).toBe('of-the-account')
  })

  it('use the refresh token of a user that gcloud stored, with the quota project', async () => {
    file('application_default_credentials.json', {
      type: 'authorized_user',
      client_id: 'id',
      client_secret: 'secret',
      refresh_token: 'refresh',
      quota_project_id: 'payer',
      token_uri: `${server.base}/google/token`,
    })
    const found = await applicationDefault({ ...none, CLOUDSDK_CONFIG: folder }).get()
    expect(found).toMatchObject({
      token: 'of-a-user',
      headers: [['x-goog-user-project', 'payer']],
    })
  })

  it('exchange the token of an external account, and can impersonate a service account', async () => {
    const external = {
      type: 'external_account',
      audience: '//iam.googleapis.com/pool',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${server.base}/google/sts`,
      credential_source: { file: file('subject', 'of-the-cluster\n') },
    }
    expect(await byFile('external', external)).toBe('exchanged')
    const source = file('subject.json', { id_token: 'of-the-cluster' })
    const format = { type: 'json', subject_token_field_name: 'id_token' }
    const acting = {
      ...external,
      credential_source: { file: source, format },
      service_account_impersonation_url: `${server.base}/google/impersonate`,
    }
    expect(await byFile('acting', acting)).toBe('impersonated')
  })

  it('use the metadata server of the machine', async () => {
    const host = server.base.replace('http://', '')
    expect(await token({ NO_GCE_CHECK: '', GCE_METADATA_HOST: host })).toBe('of-the-machine')
  })

  it('report errors without showing secrets', async () => {
    await expect(byFile('other', { type: 'impersonated_service_account' })).rejects.toThrow(
      /type impersonated_service_account are not supported/,
    )
    const broken = { ...serviceAccountOf(server.base), private_key: 'sh-secret' }
    await expect(byFile('broken', broken)).rejects.toThrow(/private_key is not a key$/)
    await expect(byFile('empty', '')).rejects.toThrow(/no type/)
    await expect(token({ GOOGLE_APPLICATION_CREDENTIALS: '/absent' })).rejects.toThrow(/absent/)
    server.isDown = true
    await expect(byFile('account', serviceAccountOf(server.base))).rejects.toThrow(/answered 503/)
  })

  it('are not available if nothing is configured', async () => {
    expect(await token({})).toBe(undefined)
  })
})

describe('Entra tokens', () => {
  const token = async (env: Environment) =>
    (await entraTokens(modelResource, undefined, env).get())?.token
  const client = () => ({
    AZURE_TENANT_ID: 'tenant',
    AZURE_CLIENT_ID: 'client',
    AZURE_AUTHORITY_HOST: `${server.base}/`,
  })

  it('are fetched with a client secret', async () => {
    expect(await token({ ...client(), AZURE_CLIENT_SECRET: 'client-secret' })).toMatch(/secret$/)
  })

  it('are fetched with a service account token of the cluster', async () => {
    const path = file('federated', 'of-the-cluster\n')
    expect(await token({ ...client(), AZURE_FEDERATED_TOKEN_FILE: path })).toMatch(/workload$/)
  })

  it('are fetched with the identity of an app or a machine', async () => {
    const app = { IDENTITY_ENDPOINT: `${server.base}/app`, IDENTITY_HEADER: 'app-secret' }
    expect(await token(app)).toMatch(/app$/)
    expect(await token({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.base })).toMatch(/machine$/)
  })

  it('are not fetched from another source if the configured one refuses', async () => {
    const wrong = { ...client(), AZURE_CLIENT_SECRET: 'wrong' }
    const both = { ...wrong, AZURE_POD_IDENTITY_AUTHORITY_HOST: server.base }
    await expect(token(both)).rejects.toThrow(/answered 401/)
  })

  it('are renewed in the background before they expire', async () => {
    const tokens = entraTokens(modelResource, undefined, {
      AZURE_POD_IDENTITY_AUTHORITY_HOST: server.base,
    })
    server.seconds = 2
    const first = await tokens.get()
    expect(tokens.get()).toBe(first)
    server.seconds = 3_600
    await expect.poll(() => tokens.get(), { timeout: 5_000 }).not.toBe(first)
    expect(server.calls).toHaveLength(2)
    server.isDown = true
    expect(await tokens.get()).toMatchObject({ token: expect.stringMatching(/machine$/) })
  })
})
