/** Requests of a sign-in at a gateway that relays it to a provider. */
import { createHash, randomBytes } from 'node:crypto'
import { gateway, mcpBackend, policy, routeByPath, staticBackend, toBackend } from './manifests.ts'
import { redirect } from './mcp-sign-in.ts'
import type { OAuthServer } from './oauth-server.ts'

export const audience = 'https://mcp.example.com'
const verifier = randomBytes(32).toString('base64url')

interface Servers {
  /** Port of the MCP server. */
  readonly mcp: number
  readonly idpA: OAuthServer
  readonly idpB: OAuthServer
}

/** Manifests of an MCP server at `/NAME`. The keys are those of the backend `idpa` or `idpb`. */
export function guardedServer(
  name: string,
  mcp: number,
  provider: 'IdpA' | 'IdpB',
  { issuer, keysPath }: Pick<OAuthServer, 'issuer' | 'keysPath'>,
  more: Json = {},
) {
  const jwks = { jwksPath: keysPath, backendRef: toBackend(provider.toLowerCase()) }
  const authentication = { issuer, provider, audiences: [audience], jwks, ...more }
  return [
    mcpBackend(name, [{ name: 'items', static: { host: '127.0.0.1', port: mcp } }]),
    routeByPath(name),
    policy(name, `GatewayBackend/${name}`, { backend: { mcp: { authentication } } }),
  ]
}

/** Manifests with an MCP server at `/a` behind IdpA, and at `/b` and `/other` behind IdpB. */
export function signInManifests(port: number, { mcp, idpA, idpB }: Servers) {
  return [
    gateway(port),
    staticBackend('idpa', idpA.port),
    staticBackend('idpb', idpB.port),
    ...guardedServer('a', mcp, 'IdpA', idpA),
    ...guardedServer('b', mcp, 'IdpB', idpB),
    ...guardedServer('other', mcp, 'IdpB', idpB),
  ]
}

type Json = Record<string, unknown>
type Texts = Record<string, string>

/** Sends one request as a browser, without following redirects. */
export async function visit(url: string) {
  const response = await fetch(url, { redirect: 'manual' })
  const { status, headers } = response
  const text = await response.text()
  return { status, location: headers.get('location') ?? undefined, text }
}

/** Requests at the paths of one gateway. */
export class SignInRequests {
  readonly #origin: string

  constructor(port: number) {
    this.#origin = `http://127.0.0.1:${port}`
  }

  url(path: string): string {
    return `${this.#origin}${path}`
  }

  metadataUrl(path: string): string {
    return this.url(`/.well-known/oauth-authorization-server${path}`)
  }

  async metadata(path: string): Promise<Texts> {
    return (await (await fetch(this.metadataUrl(path))).json()) as Texts
  }

  async register(path: string, fields: Json): Promise<Response> {
    const { registration_endpoint = '' } = await this.metadata(path)
    return fetch(registration_endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    })
  }

  /** Registers a client. Returns its id. */
  async newClient(path: string, ...redirect_uris: string[]): Promise<string> {
    const fields = { redirect_uris, token_endpoint_auth_method: 'none' }
    const registered = (await (await this.register(path, fields)).json()) as Json
    return String(registered.client_id)
  }

  /** URL of a request for authorization. */
  authorization(path: string, fields: Texts): string {
    const query = new URLSearchParams({
      response_type: 'code',
      redirect_uri: redirect,
      state: 'of the client',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      ...fields,
    })
    return `${this.metadataUrl(path)}/client-authorization?${query}`
  }

  /** The URL of the callback that the provider redirects to, before the browser has followed it. */
  async callback(path: string, fields: Texts): Promise<URL> {
    const toProvider = await visit(this.authorization(path, fields))
    const toGateway = await visit(toProvider.location ?? '')
    return new URL(toGateway.location ?? '')
  }

  async token(path: string, fields: Texts) {
    const response = await fetch(`${this.metadataUrl(path)}/client-token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code_verifier: verifier,
        ...fields,
      }),
    })
    return { status: response.status, body: (await response.json()) as Json }
  }
}
