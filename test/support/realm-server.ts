/**
 * An identity provider with realms, as far as preparing one goes: it demands method, path, content
 * type, body and bearer of every call exactly, and answers 401 to whatever it does not know.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inSeconds, keySetOf, type SigningKey, sign, signingKey } from './identity-provider.ts'

type Fields = Record<string, unknown>

export interface ReceivedCall {
  readonly method: string
  readonly path: string
  readonly type: string | undefined
  readonly authorization: string | undefined
  readonly text: string
  readonly status: number
}

export interface RealmServerOptions {
  readonly realm?: string
  /** Do policies keep clients from being registered until they are removed? */
  readonly isRestricted?: boolean
  /** How many calls each admin token is valid for. If omitted, no limit. */
  readonly tokenUses?: number
}

export interface Client extends Fields {
  readonly id: string
  readonly clientId: string
  readonly secret: string
  readonly mappers: Fields[]
}

interface Reply {
  readonly status: number
  /** A text is sent as it is. */
  readonly body?: unknown
}

export const adminUser = 'root-of-realms'
export const adminPassword = 'p4ss & "word" of/the=admin'
export const policyType = 'registration-policies'

/** Thrown if a call is not as expected. */
class Wrong extends Error {
  readonly status: number
  constructor(status: number, what: string) {
    super(what)
    this.status = status
  }
}

const isText = (value: unknown) => typeof value === 'string'
const isFlag = (value: unknown) => typeof value === 'boolean'
const isCount = (value: unknown) => Number.isInteger(value)
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText)
const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Exactly these members, each of its type. */
function requireShape(body: unknown, shape: Record<string, (value: unknown) => boolean>): Fields {
  const fields = (isObject(body) ? body : {}) as Fields
  const given = Object.keys(fields).sort().join()
  if (given !== Object.keys(shape).sort().join()) throw new Wrong(400, `unexpected fields ${given}`)
  for (const [name, accepts] of Object.entries(shape)) {
    if (!accepts(fields[name])) throw new Wrong(400, `${name} has another type`)
  }
  return fields
}

export class RealmServer {
  readonly realm: string
  readonly received: ReceivedCall[] = []
  readonly clients = new Map<string, Client>()
  readonly users = new Map<string, Fields>()
  components: Fields[]
  /** Instead of the true answer, from now on; by 'METHOD last-part-of-the-path'. */
  readonly failures = new Map<string, Reply>()
  url = ''
  readonly #key: SigningKey
  readonly #tokenUses: number
  readonly #adminTokens = new Map<string, number>()
  readonly #initialTokens = new Map<string, number>()
  readonly #server = createServer((request, response) => void this.#receive(request, response))

  constructor(key: SigningKey, { realm = 'shop', isRestricted, tokenUses }: RealmServerOptions) {
    this.#key = key
    this.realm = realm
    this.#tokenUses = tokenUses ?? Number.POSITIVE_INFINITY
    const component = (id: string, providerId: string, subType: string) => ({
      id,
      providerId,
      subType,
    })
    this.components = [
      component('keep-1', 'max-clients', 'anonymous'),
      component('keep-2', 'allowed-client-templates', 'authenticated'),
      ...(isRestricted
        ? [
            component('lock-1', 'trusted-hosts', 'anonymous'),
            component('lock-2', 'allowed-client-templates', 'anonymous'),
          ]
        : []),
    ]
  }

  get issuer(): string {
    return `${this.url}/realms/${this.realm}`
  }

  /** Makes every admin token stale. */
  expireTokens(): void {
    this.#adminTokens.clear()
  }

  /** Calls as 'METHOD path -> status', without those for tokens. */
  get calls(): string[] {
    return this.received
      .filter(({ path }) => !path.endsWith('/token'))
      .map(({ method, path, status }) => `${method} ${path} -> ${status}`)
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url: path = '', headers } = request
    const text = Buffer.concat(chunks).toString()
    const call = {
      method,
      path,
      type: headers['content-type'],
      authorization: headers.authorization,
      text,
    }
    const { status, body } = await this.#answer(call)
    this.received.push({ ...call, status })
    response.writeHead(status, { 'content-type': 'application/json', location: 'http://elsewhere' })
    response.end(typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body))
  }

  async #answer(call: Omit<ReceivedCall, 'status'>): Promise<Reply> {
    const last = call.path.split('?')[0]?.split('/').at(-1)
    const failure = this.failures.get(`${call.method} ${last}`)
    if (failure !== undefined) return failure
    try {
      return await this.#route(call)
    } catch (error) {
      if (error instanceof Wrong) return { status: error.status, body: { error: error.message } }
      throw error
    }
  }

  async #route(call: Omit<ReceivedCall, 'status'>): Promise<Reply> {
    const { method, path, text } = call
    const own = `/realms/${this.realm}`
    const admin = `/admin/realms/${this.realm}`
    const json = () => {
      if (call.type !== 'application/json') throw new Wrong(415, 'the body must be JSON')
      return JSON.parse(text) as unknown
    }
    const bearer = () => /^Bearer (\S+)$/.exec(call.authorization ?? '')?.[1] ?? ''
    const asAdmin = () => this.#use(this.#adminTokens, bearer())
    const bare = () => {
      if (text !== '' || call.type !== undefined) throw new Wrong(400, 'there must be no body')
    }
    const [, id = '', below = ''] = /\/clients\/([^/]+)(\/.*)?$/.exec(path) ?? []
    switch (`${method} ${path}`) {
      case 'POST /realms/master/protocol/openid-connect/token':
        return this.#adminToken(call)
      case `POST ${own}/protocol/openid-connect/token`:
        return this.#userToken(call)
      case `GET ${own}/.well-known/openid-configuration`: {
        const jwks_uri = `${this.issuer}/protocol/openid-connect/certs`
        return { status: 200, body: { issuer: this.issuer, jwks_uri } }
      }
      case `GET ${own}/protocol/openid-connect/certs`:
        return { status: 200, body: keySetOf(this.#key) }
      case `POST ${admin}/clients-initial-access`: {
        asAdmin()
        const { count } = requireShape(json(), { expiration: isCount, count: isCount })
        const token = randomUUID()
        this.#initialTokens.set(token, count as number)
        return { status: 200, body: { id: randomUUID(), token } }
      }
      case `POST ${own}/clients-registrations/default`:
        this.#use(this.#initialTokens, bearer())
        return this.#register(requireShape(json(), { clientId: isText }).clientId as string)
      case `POST ${admin}/users`:
        asAdmin()
        return this.#addUser(json())
      case `GET ${admin}/components?type=${policyType}`:
        asAdmin()
        bare()
        return { status: 200, body: this.components }
      case `PUT ${admin}/clients/${id}`:
        asAdmin()
        return this.#configure(id, json())
      case `POST ${admin}/clients/${id}/protocol-mappers/models`:
        asAdmin()
        return this.#addMapper(id, json())
    }
    const component = new RegExp(`^${admin}/components/([^/?]+)$`).exec(path)?.[1]
    if (method === 'DELETE' && component !== undefined && below === '') {
      asAdmin()
      bare()
      const before = this.components.length
      this.components = this.components.filter((entry) => entry.id !== component)
      return { status: before > this.components.length ? 204 : 404 }
    }
    if (/^\/realms\/[^/]+\/\.well-known/.test(path)) throw new Wrong(404, 'Realm does not exist')
    throw new Wrong(401, 'HTTP 401 Unauthorized')
  }

  /** One use less; a token without uses is stale. */
  #use(tokens: Map<string, number>, token: string): void {
    const left = tokens.get(token) ?? 0
    if (left <= 0) throw new Wrong(401, `HTTP 401 Unauthorized for ${token}`)
    tokens.set(token, left - 1)
  }

  #form({ type, text }: Omit<ReceivedCall, 'status'>, fields: readonly string[]): Fields {
    if (!/^application\/x-www-form-urlencoded\b/.test(type ?? '')) throw new Wrong(415, 'no form')
    const form = Object.fromEntries(new URLSearchParams(text))
    return requireShape(form, Object.fromEntries(fields.map((name) => [name, isText])))
  }

  #adminToken(call: Omit<ReceivedCall, 'status'>): Reply {
    const form = this.#form(call, ['client_id', 'username', 'password', 'grant_type'])
    const isRight =
      form.client_id === 'admin-cli' &&
      form.grant_type === 'password' &&
      form.username === adminUser &&
      form.password === adminPassword
    if (!isRight) throw new Wrong(401, `Invalid user credentials: ${form.password}`)
    const access_token = randomUUID()
    this.#adminTokens.set(access_token, this.#tokenUses)
    return { status: 200, body: { access_token } }
  }

  /** What a user gets, with the claims that the mappers of the client say. */
  async #userToken(call: Omit<ReceivedCall, 'status'>): Promise<Reply> {
    const form = this.#form(call, [
      'client_id',
      'client_secret',
      'username',
      'password',
      'grant_type',
    ])
    const client = [...this.clients.values()].find((entry) => entry.clientId === form.client_id)
    const user = this.users.get(form.username as string)
    const [credential] = (user?.credentials ?? []) as Fields[]
    if (client?.secret !== form.client_secret || credential?.value !== form.password) {
      throw new Wrong(401, 'Invalid user credentials')
    }
    if (client?.directAccessGrantsEnabled !== true) throw new Wrong(400, 'unauthorized_client')
    const attributes = user?.attributes as Fields
    const claimsFor = (token: string) => ({
      iss: this.issuer,
      sub: form.username as string,
      exp: inSeconds(300),
      ...Object.fromEntries(
        client.mappers
          .map((mapper) => mapper.config as Record<string, string>)
          .filter((config) => config[`${token}.token.claim`] === 'true')
          .map((config) => [config['claim.name'], attributes[config['user.attribute'] ?? '']]),
      ),
    })
    const access_token = await sign(this.#key, claimsFor('access'))
    const id_token = await sign(this.#key, claimsFor('id'))
    return { status: 200, body: { access_token, id_token } }
  }

  #register(clientId: string): Reply {
    const isLock = ({ providerId, subType }: Fields) =>
      providerId === 'trusted-hosts' ||
      (providerId === 'allowed-client-templates' && subType === 'anonymous')
    if (this.components.some(isLock)) throw new Wrong(403, 'Host not trusted.')
    if ([...this.clients.values()].some((client) => client.clientId === clientId)) {
      throw new Wrong(409, 'Client Identifier in use')
    }
    const client = { id: randomUUID(), clientId, secret: randomUUID(), mappers: [] }
    this.clients.set(client.id, client)
    return { status: 201, body: { id: client.id, clientId, secret: client.secret } }
  }

  #configure(id: string, body: unknown): Reply {
    const settings = requireShape(body, {
      serviceAccountsEnabled: isFlag,
      directAccessGrantsEnabled: isFlag,
      authorizationServicesEnabled: isFlag,
      redirectUris: isTexts,
    })
    Object.assign(this.#client(id), settings)
    return { status: 204 }
  }

  #addMapper(id: string, body: unknown): Reply {
    const mapper = requireShape(body, {
      name: isText,
      protocol: isText,
      protocolMapper: isText,
      config: isObject,
    })
    requireShape(mapper.config, {
      'claim.name': isText,
      'jsonType.label': isText,
      'user.attribute': isText,
      'id.token.claim': isText,
      'access.token.claim': isText,
    })
    const { mappers } = this.#client(id)
    if (mappers.some(({ name }) => name === mapper.name)) throw new Wrong(409, 'mapper exists')
    mappers.push(mapper)
    return { status: 201 }
  }

  #addUser(body: unknown): Reply {
    const user = requireShape(body, {
      username: isText,
      email: isText,
      firstName: isText,
      lastName: isText,
      enabled: isFlag,
      attributes: isObject,
      credentials: Array.isArray,
    })
    for (const credential of user.credentials as unknown[]) {
      requireShape(credential, { type: isText, value: isText, temporary: isFlag })
    }
    const name = user.username as string
    if (this.users.has(name)) throw new Wrong(409, 'User exists with same username')
    this.users.set(name, user)
    return { status: 201 }
  }

  #client(id: string): Client {
    const client = this.clients.get(id)
    if (client === undefined) throw new Wrong(404, 'Could not find client')
    return client
  }
}

/** Starts one on a free loopback port. */
export async function startRealmServer(options: RealmServerOptions = {}): Promise<RealmServer> {
  return new RealmServer(await signingKey('realm'), options).start()
}
