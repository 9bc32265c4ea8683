/** The official MCP client's own way to a token, with a browser that agrees to everything. */
import {
  type OAuthClientProvider,
  UnauthorizedError,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type {
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js'

/** Where the browser is sent back to; nothing listens there. */
export const redirect = 'http://127.0.0.1:1/callback'

/** Follows redirects as a browser does, with cookies, until one leads to the client, and returns that URL. */
export async function browse(from: URL | string, client: string = redirect): Promise<URL> {
  let url = new URL(from)
  const cookies = new Map<string, string>()
  for (let hops = 0; hops < 10; hops++) {
    if (url.href.startsWith(client)) return url
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${response.status}: ${await response.text()}`)
    url = new URL(location, url)
  }
  throw new Error(`too many redirects: ${url}`)
}

export class SignIn implements OAuthClientProvider {
  readonly redirectUrl = redirect
  readonly clientMetadata = {
    client_name: 'test',
    redirect_uris: [redirect],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  /** What the server has sent back with the browser. */
  response = new URLSearchParams()
  #client: OAuthClientInformationMixed | undefined
  #tokens: OAuthTokens | undefined
  #verifier = ''

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#client
  }

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client
  }

  tokens(): OAuthTokens | undefined {
    return this.#tokens
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.response = (await browse(url)).searchParams
  }

  get code(): string {
    return this.response.get('code') ?? ''
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  codeVerifier(): string {
    return this.#verifier
  }
}

/** Connects with the SDK of generation 1, signs in when the server asks for it, and connects again. */
export async function signInWithFirstSdk(url: string | URL): Promise<Client> {
  const authProvider = new SignIn()
  const open = () => {
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider })
    const client = new Client({ name: 'test', version: '1.0.0' })
    return { transport, client, connect: () => client.connect(transport) }
  }
  const first = open()
  const refused = await first.connect().then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(refused instanceof UnauthorizedError)) throw refused
  await first.transport.finishAuth(authProvider.code)
  const second = open()
  await second.connect()
  return second.client
}
