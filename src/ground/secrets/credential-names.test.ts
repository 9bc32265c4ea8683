import { describe, expect, it } from 'vitest'
import { changeQuery } from '../base/query-string.ts'
import { isCredentialName, isCredentialParameter, mayNameCredential } from './credential-names.ts'

const credentials = [
  'Authorization',
  'Proxy-Authorization',
  'Cookie',
  'x-api-key',
  'X_API_KEY',
  'api-key',
  'apikey',
  'api_key',
  'x-goog-api-key',
  'ocp-apim-subscription-key',
  'subscription-key',
  'x-functions-key',
  'x-amz-security-token',
  'X-Amz-Signature',
  'X-Amz-Credential',
  'X-Goog-Signature',
  'AWSAccessKeyId',
  'access_token',
  'refresh_token',
  'id_token',
  'x-auth-token',
  'x-forwarded-access-token',
  'x-goog-iam-authorization-token',
  'x-ms-token-aad-access-token',
  'client_secret',
  'password',
  'sig',
  'private_token',
  'x-gitlab-token',
  'api_token',
  'apitoken',
  'app_key',
  'auth_key',
  'client_assertion',
  'pwd',
  'pass',
  'passphrase',
  'db_password',
  'webhook_secret',
  'private_key',
  'signing_key',
  'encryption_key',
  'account_key',
  'auth',
  'jwt',
  'credentials',
  'x-authorization',
  'x-serverless-authorization',
  'x-auth',
  'authentication',
  'x-bearer',
  'x-jwt',
  'x-credential',
  'x-user-key',
  'x-rapidapi-key',
  'x-aws-key',
  'x-goog-authenticated-user-jwt',
  'x-amzn-oidc-data',
  'Helicone-Auth',
  'x-forwarded-client-cert',
  'my-secret-thing',
]

const others = [
  'accept',
  'author',
  'session_id',
  'x-stainless-lang',
  'x-codex-turn-metadata',
  'secretary-name',
  'anthropic-beta',
  'api-version',
  'content-type',
  'idempotency-key',
  'key',
  'max_tokens',
  'mcp-session-id',
  'openai-organization',
  'pageToken',
  'page_token',
  'nextPageToken',
  'continuation-token',
  'progressToken',
  'prompt_cache_key',
  'sec-websocket-key',
  'x-amzn-bedrock-guardrailidentifier',
  'x-goog-api-client',
  'x-goog-user-project',
  'x-request-id',
]

describe('names of credential fields', () => {
  it.each(credentials)('include %s', (name) => {
    expect(isCredentialName(name)).toBe(true)
    expect(mayNameCredential(`a=b&${name}=c`)).toBe(true)
  })

  it.each(others)('do not include %s', (name) => {
    expect(isCredentialName(name)).toBe(false)
  })
})

describe('query parameters that are not recorded', () => {
  it.each([
    ['code', 'x'],
    ['SAMLResponse', 'x'],
    ['ticket', 'x'],
    ['otp', 'x'],
    ['sid', 'x'],
    ['hmac', 'x'],
    ['oauth_verifier', 'x'],
    ['api_key[]', 'x'],
    ['user[password]', 'x'],
    ['password[0]', 'x'],
    ['api%5Fkey', 'x'],
    ['api%255Fkey', 'x'],
    ['next', '/cb?access_token=x'],
    ['next', '%2Fcb%3Fa%3Db%26access_token%3Dx'],
    ['next', 'https://a.example/#id_token=x'],
  ])('include %s with the value %s', (name, value) => {
    expect(isCredentialParameter(name, value)).toBe(true)
    expect(mayNameCredential(`${name}=${value}`)).toBe(true)
  })

  it.each([
    ['next', '/cb?page_token=x'],
    ['user[name]', 'x'],
    ['q', 'access_token'],
    ['q', '100%'],
  ])('do not include %s with the value %s', (name, value) => {
    expect(isCredentialParameter(name, value)).toBe(false)
  })
})

describe('removing a parameter from a query', () => {
  const without = (query: string) =>
    changeQuery(query, (parameter, name) => (name === 'key' ? undefined : parameter))

  it.each([
    ['a=1&key=2&b=3', 'a=1&b=3'],
    ['key=2', undefined],
    ['key', undefined],
    ['a=1&%6Bey=2', 'a=1'],
    ['a=1;key=2;b=3', 'a=1;b=3'],
    ['a=%2B+&&b', 'a=%2B+&&b'],
    ['a=key=2', 'a=key=2'],
    ['%ff=1&%k=2&key=3', '%ff=1&%k=2'],
  ])('keeps the other parameters of %s as they were sent', (query, expected) => {
    expect(without(query)).toBe(expected)
  })
})
