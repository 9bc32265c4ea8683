/** The steps of a preparation, in order; each may run again without harm. */
import { UsageError } from '../output.ts'
import type { AdminClient } from './admin.ts'
import { type RegisteredClient, readClient, writeClient } from './files.ts'
import {
  type Answer,
  type Call,
  exchange,
  nameOf,
  parseAnswer,
  refusal,
  type Server,
  textField,
} from './http.ts'
import { IdentityProviderError } from './problem.ts'
import type { NewUser } from './users.ts'

interface ClientSettings {
  readonly serviceAccountsEnabled: boolean
  readonly directAccessGrantsEnabled: boolean
  readonly authorizationServicesEnabled: boolean
  readonly redirectUris: readonly string[]
}

export interface Discovery {
  readonly issuer: string
  /** Path and query of the key set, from the root of its host. */
  readonly jwksPath: string
  /** Does the document name the keys at another address than the one that was asked? */
  readonly elsewhere: boolean
}

/** Initial access tokens are used at once: one client, five minutes. */
const initialAccess = { expiration: 300, count: 1 }

const conflict = 409

export class Setup {
  readonly #server: Server
  readonly #admin: AdminClient
  readonly #realm: string
  /** The realm as a part of a path. */
  readonly #path: string
  readonly #tell: (text: string) => void

  constructor(server: Server, admin: AdminClient, realm: string, tell: (text: string) => void) {
    this.#server = server
    this.#admin = admin
    this.#realm = realm
    this.#path = encodeURIComponent(realm)
    this.#tell = tell
  }

  /** Issuer and key set of the realm; needs no credentials, and shows that the realm exists. */
  async discover(): Promise<Discovery> {
    const path = `/realms/${this.#path}/.well-known/openid-configuration`
    const call: Call = { method: 'GET', path }
    const answer = await exchange(this.#server, call)
    if (answer.status !== 200) {
      const advice = answer.status === 404 ? `does the realm '${this.#realm}' exist?` : ''
      throw refusal(this.#server, call, answer, advice)
    }
    const document = parseAnswer(call, answer)
    const issuer = textField(call, document, 'issuer')
    const uri = textField(call, document, 'jwks_uri')
    if (!URL.canParse(uri)) {
      throw new IdentityProviderError(`${nameOf(call)} answers with a 'jwks_uri' that is no URL`)
    }
    const { origin, pathname, search } = new URL(uri)
    const elsewhere = origin !== new URL(this.#server.url).origin
    return { issuer, jwksPath: pathname + search, elsewhere }
  }

  /**
   * Deletes the policies that keep strangers from registering clients: for tests only.
   * @param type of the components that are client-registration policies
   */
  async openRegistration(type: string): Promise<void> {
    const components = `/admin/realms/${this.#path}/components`
    const call: Call = { method: 'GET', path: `${components}?type=${encodeURIComponent(type)}` }
    const found = parseAnswer(call, await this.#admin.call(call))
    if (!Array.isArray(found)) {
      throw new IdentityProviderError(`${nameOf(call)} answers with what is no list`)
    }
    for (const component of found.filter(isRegistrationLock)) {
      const path = `${components}/${encodeURIComponent(textField(call, component, 'id'))}`
      // Gone already: another run was quicker.
      await this.#admin.call({ method: 'DELETE', path }, [404])
      this.#tell(`removed the registration policy ${component.providerId} (testing)`)
    }
  }

  /** Registers the client and writes it down, or takes what an earlier run has written down. */
  async registerClient(clientId: string, file: string): Promise<RegisteredClient> {
    const wanted = { url: this.#server.url, realm: this.#realm, clientId }
    const known = readClient(file, wanted)
    if (known !== undefined) {
      if (known.secret !== undefined) this.#server.credentials.add(known.secret)
      this.#tell(`client ${clientId} is registered already, says ${file}`)
      return known
    }
    const call: Call = {
      method: 'POST',
      path: `/realms/${this.#path}/clients-registrations/default`,
      json: { clientId },
    }
    const renew = () => this.#initialAccessToken()
    const answer = await this.#admin.callWith(call, await renew(), renew, [400, conflict])
    if (answer.status === 400 || answer.status === conflict) {
      throw refusal(this.#server, call, answer, takenAdvice(answer, file))
    }
    const registered = parseAnswer(call, answer)
    const id = textField(call, registered, 'id')
    const secret = this.#server.credentials.add(textField(call, registered, 'secret'))
    const client = { ...wanted, id, secret }
    writeClient(file, client)
    this.#tell(`registered client ${clientId}; its id and secret are in ${file}`)
    return client
  }

  async configureClient({ id, clientId }: RegisteredClient, json: ClientSettings): Promise<void> {
    const call: Call = { method: 'PUT', path: this.#clientPath(id), json }
    const answer = await this.#admin.call(call, [404])
    if (answer.status === 404) {
      const advice = 'the client is gone; delete the file of --client-file to register it again'
      throw refusal(this.#server, call, answer, advice)
    }
    this.#tell(`configured client ${clientId}`)
  }

  /** Puts the attribute `group` of a user into the claim `group` of its tokens. */
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
    this.#tell(status === conflict ? 'mapper group exists already' : 'added mapper group')
  }

  async addUser(json: NewUser): Promise<void> {
    const path = `/admin/realms/${this.#path}/users`
    const { status } = await this.#admin.call({ method: 'POST', path, json }, [conflict])
    this.#tell(
      status === conflict
        ? `user ${json.username}, or another with this email, exists already and was left alone`
        : `added user ${json.username}`,
    )
  }

  async #initialAccessToken(): Promise<string> {
    const path = `/admin/realms/${this.#path}/clients-initial-access`
    const call: Call = { method: 'POST', path, json: initialAccess }
    const answer = parseAnswer(call, await this.#admin.call(call))
    return this.#server.credentials.add(textField(call, answer, 'token'))
  }

  #clientPath(id: string): string {
    return `/admin/realms/${this.#path}/clients/${encodeURIComponent(id)}`
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

/** Servers answer 409 or 400 where a client with this id exists; only an admin knows its secret. */
function takenAdvice({ status }: Answer, file: string): string {
  const taken =
    `where the client exists already, give the --client-file of the run that registered it, ` +
    `or choose another --client-id (${file} does not exist)`
  return status === conflict ? taken : `the client was not registered; ${taken}`
}

/** @throws UsageError where the text is no http(s) address without credentials, query and fragment */
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
