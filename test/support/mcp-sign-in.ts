/** The official MCP client's own way to a token, with a browser that agrees to everything. */
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import type {
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js'

/** Where the browser is sent back to; nothing listens there. */
const redirect = 'http://127.0.0.1:1/callback'

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
  code: string | undefined
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
    const response = await fetch(url, { redirect: 'manual' })
    const location = response.headers.get('location')
    if (location === null) throw new Error(`no redirect: ${await response.text()}`)
    this.code = new URL(location).searchParams.get('code') ?? undefined
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  codeVerifier(): string {
    return this.#verifier
  }
}
