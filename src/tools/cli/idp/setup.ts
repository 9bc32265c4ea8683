/** The steps of `sluice idp prepare`, in order. Each step can be repeated safely. */
import { UsageError } from '../shared/output.ts'
import type { AdminClient } from './admin.ts'
import { type RegisteredClient, readClient, writeClient } from './files.ts'
import { exchange, type ProviderCall, type ProviderResponse, type Server } from './http.ts'
import type { NewUser } from './users.ts'

interface ClientSettings {
  readonly serviceAccountsEnabled: boolean
  readonly directAccessGrantsEnabled: boolean
  readonly authorizationServicesEnabled: boolean
  readonly redirectUris: readonly string[]
}

export interface Discovery {
  readonly issuer: string
  /** Path and query of the key set's URL. */
  readonly jwksPath: string
  /** Whether the discovery document places the key set on another host than that of `--url`. */
  readonly isOtherHost: boolean
}

/** Limits of an initial access token: one client and five minutes, because each token is used at once. */
const initialAccess = { expiration: 300, count: 1 }

const conflict = 409

export class Setup {
  readonly #server: Server
  readonly #admin: AdminClient
  readonly #realm: string
  /** The realm name, encoded for use in a path. */
  readonly #encodedRealm: string
  readonly #report: (text: string) => void

  constructor(server: Server, admin: AdminClient, realm: string, report: (text: string) => void) {
    this.#server = server
    this.#admin = admin
    this.#realm = realm
    this.#encodedRealm = encodeURIComponent(realm)
    this.#report = report
  }

  /** Fetches the issuer and key set of the realm. Needs no credentials; fails if the realm does not exist. */
  async discover(): Promise<Discovery> {
    const path = `/realms/${this.#encodedRealm}/.well-known/openid-configuration`
    const response = await exchange(this.#server, { method: 'GET', path })
    if (response.status !== 200) {
      throw response.refusal(
        response.status === 404 ? `does the realm '${this.#realm}' exist?` : '',
      )
    }
    const issuer = response.textField('issuer')
    const uri = response.textField('jwks_uri')
    if (!URL.canParse(uri)) throw response.problem("has a 'jwks_uri' that is not a URL")
    const { origin, pathname, search } = new URL(uri)
    const isOtherHost = origin !== new URL(this.#server.url).origin
    return { issuer, jwksPath: pathname + search, isOtherHost }
  }

  /**
   * Deletes the policies that restrict the registration of clients. For tests only.
   * @param type component type of registration policies
   */
  async openRegistration(type: string): Promise<void> {
    const components = `/admin/realms/${this.#encodedRealm}/components`
    const list = `${components}?type=${encodeURIComponent(type)}`
    const response = await this.#admin.call({ method: 'GET', path: list })
    const found = response.json()
    if (!Array.isArray(found)) throw response.problem('is not a list')
    for (const component of found.filter(isRegistrationLock)) {
      const path = `${components}/${encodeURIComponent(response.textField('id', component))}`
      // 404 means that another run has already deleted the policy.
      await this.#admin.call({ method: 'DELETE', path }, [404])
      this.#report(`removed the registration policy ${component.providerId} (testing)`)
    }
  }

  /**
   * Returns the client that an earlier run stored in `file`, or undefined if the file does not exist.
   * @throws UsageError if the file is not valid, is for another client, or could not be written
   */
  knownClient(clientId: string, file: string): RegisteredClient | undefined {
    const known = readClient(file, { url: this.#server.url, realm: this.#realm, clientId })
    if (known === undefined) return undefined
    if (known.secret !== undefined) this.#server.credentials.add(known.secret)
    this.#report(`client ${clientId} is registered already, according to ${file}`)
    return known
  }

  /** Registers the client and stores it in `file`. */
  async registerClient(clientId: string, file: string): Promise<RegisteredClient> {
    const call: ProviderCall = {
      method: 'POST',
      path: `/realms/${this.#encodedRealm}/clients-registrations/default`,
      json: { clientId },
    }
    const renew = () => this.#initialAccessToken()
    const response = await this.#admin.callWith(call, await renew(), renew, [400, conflict])
    if (response.status === 400 || response.status === conflict) {
      throw response.refusal(takenAdvice(response, file))
    }
    const id = response.textField('id')
    const secret = this.#server.credentials.add(response.textField('secret'))
    const client = { url: this.#server.url, realm: this.#realm, clientId, id, secret }
    writeClient(file, client)
    this.#report(`registered client ${clientId}; its id and secret are in ${file}`)
    return client
  }

  async configureClient({ id, clientId }: RegisteredClient, json: ClientSettings): Promise<void> {
    const path = this.#clientPath(id)
    const response = await this.#admin.call({ method: 'PUT', path, json }, [404])
    if (response.status === 404) {
      const advice = 'the client is gone; delete the file of --client-file to register it again'
      throw response.refusal(advice)
    }
    this.#report(`configured client ${clientId}`)
  }

  /** Maps the attribute `group` of a user to the claim `group` of its tokens. */
  async mapGroups({ id }: RegisteredClient): Promise<void> {
    const json = {
      name: 'group',
      protocol: 'openid-connect',
      protocolMapper: 'oidc-usermodel-attribute-mapper',
      config: {
        'claim.name': 'group',
        'jsonType.label': 'String',
        'user.attribute': 'group',
        'id.token.claim': 'true',
        'access.token.claim': 'true',
      },
    }
    const path = `${this.#clientPath(id)}/protocol-mappers/models`
    const { status } = await this.#admin.call({ method: 'POST', path, json }, [conflict])
    this.#report(status === conflict ? 'mapper group exists already' : 'added mapper group')
  }

  async addUser(json: NewUser): Promise<void> {
    const path = `/admin/realms/${this.#encodedRealm}/users`
    const { status } = await this.#admin.call({ method: 'POST', path, json }, [conflict])
    this.#report(
      status === conflict
        ? `user ${json.username}, or another with this email, exists already and was left alone`
        : `added user ${json.username}`,
    )
  }

  async #initialAccessToken(): Promise<string> {
    const path = `/admin/realms/${this.#encodedRealm}/clients-initial-access`
    const response = await this.#admin.call({ method: 'POST', path, json: initialAccess })
    return this.#server.credentials.add(response.textField('token'))
  }

  #clientPath(id: string): string {
    return `/admin/realms/${this.#encodedRealm}/clients/${encodeURIComponent(id)}`
  }
}

interface RegistrationLock {
  readonly providerId: string
}

function isRegistrationLock(component: unknown): component is RegistrationLock {
  if (typeof component !== 'object' || component === null) return false
  const { providerId, subType } = component as Readonly<Record<string, unknown>>
  if (providerId === 'trusted-hosts') return true
  return providerId === 'allowed-client-templates' && subType === 'anonymous'
}

/** Advice after 409 or 400, which servers answer if the client id is taken. */
function takenAdvice({ status }: ProviderResponse, file: string): string {
  const taken =
    `if the client exists already, give the --client-file of the run that registered it, ` +
    `or choose another --client-id (${file} does not exist)`
  return status === conflict ? taken : `the client was not registered; ${taken}`
}

/** @throws UsageError unless `--url` is an http(s) address without credentials, query and fragment */
export function baseAddress(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError('--url: must be an address that begins with http:// or https://')
  }
  if (url.username !== '' || url.password !== '') {
    throw new UsageError('--url: must not contain credentials; see --admin-password-file')
  }
  if (url.search !== '' || url.hash !== '') {
    throw new UsageError('--url: must not have a query or a fragment')
  }
  return url.origin + url.pathname.replace(/\/+$/, '')
}
