/**
 * Finds Microsoft Entra tokens if no key is configured. The order of the sources is that of the SDKs:
 *
 *   client secret -> workload identity (AKS) -> managed identity (App Service, virtual machine)
 */
import { readFile } from 'node:fs/promises'
import {
  type AccessToken,
  type Environment,
  fetchToken,
  firstFound,
  metadataWaitMs,
  orAbsent,
  type TokenSource,
} from '../access-token.ts'
import { Renewed } from '../renewed.ts'

const service = 'the token service of Entra'
const resource = 'https://cognitiveservices.azure.com'

function tokenUrl(tenant: string, { AZURE_AUTHORITY_HOST: host }: Environment): string {
  const base = (host || 'https://login.microsoftonline.com').replace(/\/$/, '')
  return `${base}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`
}

const clientCredentials = (client_id: string, proof: Readonly<Record<string, string>>) => ({
  method: 'POST',
  body: new URLSearchParams({
    grant_type: 'client_credentials',
    client_id,
    scope: `${resource}/.default`,
    ...proof,
  }),
})

/** Client secret: `AZURE_CLIENT_SECRET`, with `AZURE_TENANT_ID` and `AZURE_CLIENT_ID`. */
const clientSecret: TokenSource = async (env) => {
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client, AZURE_CLIENT_SECRET: secret } = env
  if (!tenant || !client || !secret) return undefined
  const request = clientCredentials(client, { client_secret: secret })
  return fetchToken(service, tokenUrl(tenant, env), request)
}

/** Token that the cluster issued: `AZURE_FEDERATED_TOKEN_FILE`, with the same tenant and client id. */
const workloadIdentity: TokenSource = async (env) => {
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client, AZURE_FEDERATED_TOKEN_FILE: path } = env
  if (!tenant || !client || !path) return undefined
  const assertion = (await readFile(path, 'utf8')).trim()
  const request = clientCredentials(client, {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  })
  return fetchToken(service, tokenUrl(tenant, env), request)
}

/** Managed identity of App Service, Functions and Container Apps: `IDENTITY_ENDPOINT`, `IDENTITY_HEADER`. */
const appIdentity: TokenSource = async (env) => {
  const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: header } = env
  if (!endpoint || !header) return undefined
  const query = identityQuery('2019-08-01', env)
  return fetchToken(service, `${endpoint}?${query}`, { headers: { 'x-identity-header': header } })
}

/** Managed identity of a virtual machine; `AZURE_POD_IDENTITY_AUTHORITY_HOST` overrides the service's URL. */
const machineIdentity: TokenSource = async (env) => {
  const configured = env.AZURE_POD_IDENTITY_AUTHORITY_HOST
  const base = (configured || 'http://169.254.169.254').replace(/\/$/, '')
  const url = `${base}/metadata/identity/oauth2/token?${identityQuery('2018-02-01', env)}`
  const request = { headers: { metadata: 'true' } }
  const waitMs = configured ? undefined : metadataWaitMs
  return orAbsent(Boolean(configured), fetchToken(service, url, request, waitMs))
}

/** `AZURE_CLIENT_ID` selects one of several identities of a machine. */
function identityQuery(version: string, { AZURE_CLIENT_ID: client }: Environment): string {
  const query = new URLSearchParams({ 'api-version': version, resource })
  if (client) query.set('client_id', client)
  return query.toString()
}

/** Returns the token of this process, which is cached and renewed before it expires. */
export function entraDefault(env: Environment = process.env): Renewed<AccessToken> {
  const sources = [clientSecret, workloadIdentity, appIdentity, machineIdentity]
  return new Renewed(() => firstFound(sources, env))
}
