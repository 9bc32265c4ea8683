/**
 * Serves the console: the files of the page, and the data that it folds and shows. It is read-only, unless the
 * source lets people act.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { userInfo } from 'node:os'
import { listen, type SmallServer, sendText } from '../../../../engines/local-server/server.ts'
import { bearerOf, ConsoleAccess, isFromHere } from './access.ts'
import { Api } from './api.ts'
import { PageFiles } from './files.ts'
import type { Person, Role, SignIn } from './sign-in.ts'
import type { ConsoleSource } from './source.ts'

interface ConsoleServerOptions {
  /** Loopback address `host:port`, or `off`. Port 0 selects a free port. */
  readonly address: string
  /** Folder with the built page. */
  readonly folder: string
  readonly source: ConsoleSource
  /** How people sign in. If omitted, by the token in the URL. */
  readonly signIn?: SignIn
  /** Called with the URL to open: at the start, and when the last one has been used. */
  readonly onUrl: (url: string) => void
}

/** How long a browser may open the page without a new URL. */
const cookieSeconds = 30 * 24 * 3600

const alwaysSent: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

const jsonType = 'application/json; charset=utf-8'

const needsToken = `This console needs the token in the URL that sluice printed at its start.
Each token works once: the process prints the next URL when one was used.
`

const needsSignIn = 'Sign in.\n'
/** Who has the token of the printed URL is the one who runs the process. */
const owner: Person = { name: userName(), roles: ['read', 'operate'] }

/** A user of a container may have no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'owner'
  }
}

interface RunningConsole {
  /** The bound `host:port`. */
  readonly address: string
  close(): Promise<void>
}

/**
 * Returns undefined if the address is `off`.
 * @throws `port_in_use` or `address_unusable` if the address cannot be bound
 */
export async function startConsole(
  options: ConsoleServerOptions,
): Promise<RunningConsole | undefined> {
  const server = new ConsoleServer(options)
  return (await server.start()) ? server : undefined
}

class ConsoleServer implements RunningConsole {
  address = ''
  readonly #options: ConsoleServerOptions
  readonly #access = new ConsoleAccess()
  readonly #files: PageFiles
  readonly #api: Api
  readonly #signIn: SignIn | undefined
  #server: SmallServer | undefined

  constructor(options: ConsoleServerOptions) {
    this.#options = options
    this.#files = new PageFiles(options.folder)
    this.#api = new Api(options.source)
    this.#signIn = options.signIn
  }

  async start(): Promise<boolean> {
    this.#server = await listen('console', this.#options.address, (request, response) =>
      this.#handle(request, response),
    )
    if (this.#server === undefined) return false
    this.address = this.#server.address
    this.#printUrl()
    return true
  }

  async close(): Promise<void> {
    this.#api.close()
    await this.#server?.close()
  }

  #printUrl(): void {
    const query = this.#signIn === undefined ? `?token=${this.#access.token}` : ''
    this.#options.onUrl(`http://${this.address}/${query}`)
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(alwaysSent)) response.setHeader(name, value)
    if (!isFromHere(request)) {
      return sendText(response, 403, 'The console answers only loopback hosts and its own page.\n')
    }
    const url = new URL(request.url ?? '/', 'http://console')
    if (url.pathname.startsWith('/api/')) return this.#handleData(request, response, url)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return sendText(response, 405, 'method not allowed\n')
    }
    const signInPage = this.#signIn?.pages?.[url.pathname]
    if (signInPage !== undefined) return this.#signInStep(signInPage, request, response, url)
    const token = url.searchParams.get('token')
    if (token !== null && url.pathname === '/' && this.#signIn === undefined)
      return this.#redeem(token, request, response)
    const mayRead =
      this.#signIn !== undefined || this.#access.mayReadFiles(request, cookieName(request))
    if (!mayRead) {
      return sendText(response, 401, needsToken)
    }
    if (!this.#files.has(url.pathname)) return sendText(response, 404, 'not found\n')
    await this.#files.send(url.pathname, response)
  }

  async #signInStep(
    page: NonNullable<SignIn['pages']>[string],
    request: IncomingMessage,
    response: ServerResponse,
    { searchParams }: URL,
  ): Promise<void> {
    const { host = '', cookie = '' } = request.headers
    const step = await page(`http://${host}`, searchParams, cookie)
    if ('problem' in step) return sendText(response, step.status, `${step.problem}\n`)
    if (step.cookie !== undefined) response.setHeader('set-cookie', step.cookie)
    response.writeHead(303, { location: step.location }).end()
  }

  async #handleData(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const signIn = this.#signIn
    if (url.pathname === '/api/sign-in' && signIn !== undefined) {
      return sendText(response, 200, JSON.stringify({ method: signIn.method }), jsonType)
    }
    if (url.pathname === '/api/sign-out' && request.method === 'POST') {
      signIn?.end?.(bearerOf(request))
      return sendText(response, 204, '')
    }
    let person: Person | undefined
    try {
      person = await this.#personOf(request)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      return sendText(response, 503, `The token cannot be checked now: ${why}\n`)
    }
    if (person === undefined) {
      response.setHeader('www-authenticate', 'Bearer')
      return sendText(response, 401, this.#signIn === undefined ? needsToken : needsSignIn)
    }
    const isAction = url.pathname === '/api/send' || url.pathname.startsWith('/api/actions/')
    const role: Role = isAction ? 'operate' : 'read'
    if (person.roles.includes(role)) return this.#api.handle(request, response, url, person)
    const hint = signIn?.hint(role) ?? ''
    sendText(response, 403, `${person.name} may not ${role} here. ${hint}\n`)
  }

  async #personOf(request: IncomingMessage): Promise<Person | undefined> {
    if (this.#signIn === undefined) {
      return this.#access.mayReadData(request) ? owner : undefined
    }
    return this.#signIn.review(bearerOf(request))
  }

  /** Exchanges the token. The key travels in the fragment, which neither logs nor `Referer` have. */
  #redeem(token: string, request: IncomingMessage, response: ServerResponse): void {
    const redeemed = request.method === 'GET' ? this.#access.redeem(token) : undefined
    if (redeemed === undefined) {
      sendText(response, 401, needsToken)
      return
    }
    const cookie = `${cookieName(request)}=${redeemed.cookie}`
    response.setHeader(
      'set-cookie',
      `${cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${cookieSeconds}`,
    )
    response.writeHead(303, { location: `/#k=${redeemed.key}` }).end()
    this.#printUrl()
  }
}

/** The port is that which the browser uses; it differs from ours behind a port forward. */
function cookieName({ headers }: IncomingMessage): string {
  return `sluice-console-${/:(\d+)$/.exec(headers.host ?? '')?.[1] ?? '80'}`
}
