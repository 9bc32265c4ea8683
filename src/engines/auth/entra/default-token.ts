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
/** Selects one of several managed identities of a machine. */
interface ManagedIdentity {
  readonly clientId?: string | undefined
  readonly objectId?: string | undefined
  readonly resourceId?: string | undefined
}

/** The source of tokens. If it is omitted, the first one that the environment configures. */
type EntraSource =
  | {
      readonly type: 'secret'
      readonly tenantId: string
      readonly clientId: string
      readonly clientSecret: string
    }
  | { readonly type: 'workloadIdentity' }
  | { readonly type: 'managedIdentity'; readonly identity: ManagedIdentity }

function tokenUrl(tenant: string, { AZURE_AUTHORITY_HOST: host }: Environment): string {
  const base = (host || 'https://login.microsoftonline.com').replace(/\/$/, '')
  return `${base}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`
}

/** The sources of tokens for one resource. */
class EntraTokens {
  readonly #resource: string

  constructor(resource: string) {
    this.#resource = resource
  }

  /** Client secret: `AZURE_CLIENT_SECRET`, with `AZURE_TENANT_ID` and `AZURE_CLIENT_ID`. */
  clientSecret: TokenSource = async (env) => {
    const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client, AZURE_CLIENT_SECRET: secret } = env
    if (!tenant || !client || !secret) return undefined
    const request = this.#clientCredentials(client, { client_secret: secret })
    return fetchToken(service, tokenUrl(tenant, env), request)
  }

  /** Token that the cluster issued: `AZURE_FEDERATED_TOKEN_FILE`, with the same tenant and client id. */
  workloadIdentity: TokenSource = async (env) => {
    const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client } = env
    const { AZURE_FEDERATED_TOKEN_FILE: path } = env
    if (!tenant || !client || !path) return undefined
    const assertion = (await readFile(path, 'utf8')).trim()
    const request = this.#clientCredentials(client, {
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    })
    return fetchToken(service, tokenUrl(tenant, env), request)
  }

  /** `AZURE_CLIENT_ID` selects one of several identities if `identity` does not. */
  managedIdentity(identity: ManagedIdentity | undefined): readonly TokenSource[] {
    return [
      (env) => this.#appIdentity(env, identity),
      (env) => this.#machineIdentity(env, identity),
    ]
  }

  /** Managed identity of App Service, Functions and Container Apps: `IDENTITY_ENDPOINT`, `IDENTITY_HEADER`. */
  async #appIdentity(env: Environment, identity: ManagedIdentity | undefined) {
    const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: header } = env
    if (!endpoint || !header) return undefined
    const { clientId, objectId, resourceId } = identity ?? { clientId: env.AZURE_CLIENT_ID }
    const which = { client_id: clientId, principal_id: objectId, mi_res_id: resourceId }
    const url = `${endpoint}?${this.#query('2019-08-01', which)}`
    return fetchToken(service, url, { headers: { 'x-identity-header': header } })
  }

  /** Managed identity of a virtual machine; `AZURE_POD_IDENTITY_AUTHORITY_HOST` overrides the service's URL. */
  #machineIdentity(env: Environment, identity: ManagedIdentity | undefined) {
    const configured = env.AZURE_POD_IDENTITY_AUTHORITY_HOST
    const base = (configured || 'http://169.254.169.254').replace(/\/$/, '')
    const { clientId, objectId, resourceId } = identity ?? { clientId: env.AZURE_CLIENT_ID }
    const which = { client_id: clientId, object_id: objectId, msi_res_id: resourceId }
    const url = `${base}/metadata/identity/oauth2/token?${this.#query('2018-02-01', which)}`
    const waitMs = configured ? undefined : metadataWaitMs
    const lookup = fetchToken(service, url, { headers: { metadata: 'true' } }, waitMs)
    return orAbsent(Boolean(configured), lookup)
  }

  #query(version: string, which: Readonly<Record<string, string | undefined>>): string {
    const query = new URLSearchParams({ 'api-version': version, resource: this.#resource })
    for (const [name, value] of Object.entries(which)) if (value) query.set(name, value)
    return query.toString()
  }

  #clientCredentials(client_id: string, proof: Readonly<Record<string, string>>): RequestInit {
    const scope = `${this.#resource}/.default`
    const form = { grant_type: 'client_credentials', client_id, scope, ...proof }
    return { method: 'POST', body: new URLSearchParams(form) }
  }
}

/** Returns the tokens of this process for a resource, which are cached and renewed before they expire. */
export function entraTokens(
  resource: string,
  source?: EntraSource,
  env: Environment = process.env,
): Renewed<AccessToken> {
  const tokens = new EntraTokens(resource)
  switch (source?.type) {
    case 'secret': {
      const { tenantId, clientId, clientSecret } = source
      const own = {
        ...env,
        AZURE_TENANT_ID: tenantId,
        AZURE_CLIENT_ID: clientId,
        AZURE_CLIENT_SECRET: clientSecret,
      }
      return new Renewed(() => tokens.clientSecret(own))
    }
    case 'workloadIdentity':
      return new Renewed(() => tokens.workloadIdentity(env))
    case 'managedIdentity': {
      const sources = tokens.managedIdentity(source.identity)
      return new Renewed(() => firstFound(sources, env))
    }
    default: {
      const { clientSecret, workloadIdentity } = tokens
      const sources = [clientSecret, workloadIdentity, ...tokens.managedIdentity(undefined)]
      return new Renewed(() => firstFound(sources, env))
    }
  }
}
