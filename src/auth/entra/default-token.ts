/**
 * Where tokens of Microsoft Entra come from when nobody has given a key, in the order of the SDKs:
 *
 *   client secret -> workload identity (AKS) -> managed identity (App Service, virtual machine)
 */
import { readFile } from 'node:fs/promises'
import {
  type AccessToken,
  type Environment,
  fetchToken,
  firstToken,
  type TokenSource,
} from '../access-token.ts'
import { Renewed } from '../renewed.ts'

const what = 'the token service of Entra'
const resource = 'https://cognitiveservices.azure.com'
/** Where there is no such server, nobody answers. */
const firstWaitMs = 1_000

function tokenUrl(tenant: string, { AZURE_AUTHORITY_HOST: host }: Environment): string {
  const base = (host || 'https://login.microsoftonline.com').replace(/\/$/, '')
  return `${base}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`
}

const clientCredentials = (client_id: string, more: Readonly<Record<string, string>>) => ({
  method: 'POST',
  body: new URLSearchParams({
    grant_type: 'client_credentials',
    client_id,
    scope: `${resource}/.default`,
    ...more,
  }),
})

/** `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`. */
const clientSecret: TokenSource = async (env) => {
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client, AZURE_CLIENT_SECRET: secret } = env
  if (!tenant || !client || !secret) return undefined
  const request = clientCredentials(client, { client_secret: secret })
  return fetchToken(what, tokenUrl(tenant, env), request)
}

/** `AZURE_FEDERATED_TOKEN_FILE` beside tenant and client: a token of the cluster's own. */
const workloadIdentity: TokenSource = async (env) => {
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client, AZURE_FEDERATED_TOKEN_FILE: path } = env
  if (!tenant || !client || !path) return undefined
  const assertion = (await readFile(path, 'utf8')).trim()
  const request = clientCredentials(client, {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  })
  return fetchToken(what, tokenUrl(tenant, env), request)
}

/** `IDENTITY_ENDPOINT` and `IDENTITY_HEADER`, as App Service, Functions and Container Apps set them. */
const appIdentity: TokenSource = async (env) => {
  const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: header } = env
  if (!endpoint || !header) return undefined
  const query = identityQuery('2019-08-01', env)
  return fetchToken(what, `${endpoint}?${query}`, { headers: { 'x-identity-header': header } })
}

/** Of a virtual machine; `AZURE_POD_IDENTITY_AUTHORITY_HOST` is another place for its service. */
const machineIdentity: TokenSource = async (env) => {
  const given = env.AZURE_POD_IDENTITY_AUTHORITY_HOST
  const base = (given || 'http://169.254.169.254').replace(/\/$/, '')
  const url = `${base}/metadata/identity/oauth2/token?${identityQuery('2018-02-01', env)}`
  try {
    const headers = { metadata: 'true' }
    return await fetchToken(what, url, { headers }, given ? undefined : firstWaitMs)
  } catch (error) {
    // Whoever names a place means it.
    if (given) throw error
    return undefined
  }
}

/** `AZURE_CLIENT_ID` chooses among several identities of one machine. */
function identityQuery(version: string, { AZURE_CLIENT_ID: client }: Environment): string {
  const query = new URLSearchParams({ 'api-version': version, resource })
  if (client) query.set('client_id', client)
  return query.toString()
}

/** The token of this process, kept and renewed before it ends. */
export function entraDefault(env: Environment = process.env): Renewed<AccessToken> {
  const sources = [clientSecret, workloadIdentity, appIdentity, machineIdentity]
  return new Renewed(() => firstToken(sources, env))
}
