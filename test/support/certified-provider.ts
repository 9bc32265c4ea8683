/** A certified OpenID provider (the package `oidc-provider`) that clients can register at. Every user is ann. */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { freePort } from './gateway.ts'

interface Grant {
  addOIDCScope(scope: string): void
  addResourceScope(resource: string, scope: string): void
  save(): Promise<string>
}

interface Interaction {
  readonly params: { readonly client_id: string }
  readonly prompt: {
    readonly name: string
    readonly details: {
      readonly missingOIDCScope?: readonly string[]
      readonly missingResourceScopes?: Readonly<Record<string, readonly string[]>>
    }
  }
}

/** The part of the package that is used here; it has no types. */
interface Provider {
  readonly Grant: new (of: { accountId: string; clientId: string }) => Grant
  use(handle: (context: Context, next: () => Promise<void>) => Promise<void>): void
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
  interactionFinished(
    request: IncomingMessage,
    response: ServerResponse,
    result: object,
    options: object,
  ): Promise<void>
  listen(port: number, host: string): Server
}

interface Context {
  readonly path: string
  readonly req: IncomingMessage
  readonly res: ServerResponse
  respond: boolean
}

type ProviderPackage = { readonly default: new (issuer: string, settings: object) => Provider }

export interface CertifiedProvider {
  readonly port: number
  readonly issuer: string
  readonly keysPath: string
  close(): void
}

/** Its access tokens are JWTs for `audience`. */
export function startCertifiedProvider(audience: string): Promise<CertifiedProvider> {
  return startProvider({
    cookies: { keys: ['only-for-tests'] },
    scopes: ['openid', 'tools'],
    findAccount: (_: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId }),
    }),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/agree/${uid}` },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'tools',
          audience,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
}

interface SignInOptions {
  /** Addresses of gateways, with `/oauth2/callback`, `/` after the sign-out, and `/back` for the provider. */
  readonly gateways: readonly string[]
  readonly backChannel: string
  readonly secret: string
  /** Lifetime of access tokens in seconds. */
  readonly tokenSeconds: number
  /** Further claims of ID tokens. */
  readonly claims: Readonly<Record<string, unknown>>
}

/** A provider with the client `app`, refresh tokens that are used once, and sign-out in both directions. */
export function startSignInProvider(options: SignInOptions): Promise<CertifiedProvider> {
  const { gateways, backChannel, secret, tokenSeconds, claims } = options
  return startProvider({
    cookies: { keys: ['only-for-tests'] },
    clients: [
      {
        client_id: 'app',
        client_secret: secret,
        redirect_uris: gateways.map((gateway) => `${gateway}/oauth2/callback`),
        post_logout_redirect_uris: gateways.map((gateway) => `${gateway}/bye`),
        grant_types: ['authorization_code', 'refresh_token'],
        backchannel_logout_uri: `${backChannel}/back`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ['sub', ...Object.keys(claims)] },
    conformIdTokenClaims: false,
    issueRefreshToken: () => true,
    ttl: { AccessToken: tokenSeconds },
    findAccount: (_: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, ...claims }),
    }),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/agree/${uid}` },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        // The page that asks whether to sign out.
        logoutSource: (context: { body: string }, form: string) => {
          context.body = `<!doctype html><title>Sign out?</title>${form}<button form="op.logoutForm" name="logout" value="yes">yes</button>`
        },
      },
    },
  })
}

/** A provider with the client `console`, whose ID tokens have an email address and the groups of the moment. */
export function startConsoleProvider(
  redirectURI: string,
  secret: string,
  groups: () => readonly string[],
): Promise<CertifiedProvider> {
  return startProvider({
    cookies: { keys: ['only-for-tests'] },
    clients: [{ client_id: 'console', client_secret: secret, redirect_uris: [redirectURI] }],
    claims: { openid: ['sub', 'groups', 'email'] },
    conformIdTokenClaims: false,
    findAccount: (_: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, email: 'ann@example.com', groups: groups() }),
    }),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/agree/${uid}` },
    features: { devInteractions: { enabled: false } },
  })
}

/**
 * A provider with opaque access tokens, which the client `gateway` may introspect, and `app` gets bound to its key. With
 * `demandsNonce`, proofs of the key need a nonce of the provider.
 */
export function startTokenProvider(
  secret: string,
  { demandsNonce = false } = {},
): Promise<CertifiedProvider> {
  const client = (id: string, grants: readonly string[]) => ({
    client_id: id,
    client_secret: secret,
    redirect_uris: [],
    response_types: [],
    grant_types: grants,
  })
  return startProvider({
    clients: [client('gateway', []), client('app', ['client_credentials'])],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      dPoP: {
        enabled: true,
        ...(demandsNonce && { nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true }),
      },
    },
  })
}

async function startProvider(settings: object): Promise<CertifiedProvider> {
  const name = 'oidc-provider'
  const { default: Provider } = (await import(name)) as ProviderPackage
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const provider = new Provider(issuer, settings)
  provider.use(async (context, next) => {
    if (!context.path.startsWith('/agree/')) return next()
    context.respond = false
    await agree(provider, context)
  })
  const server = provider.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port,
    issuer,
    keysPath: '/jwks',
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Logs ann in, and then grants what the client asks for. */
async function agree(provider: Provider, { req, res }: Context): Promise<void> {
  const { params, prompt } = await provider.interactionDetails(req, res)
  const result = async () => {
    if (prompt.name === 'login') return { login: { accountId: 'ann' } }
    const grant = new provider.Grant({ accountId: 'ann', clientId: params.client_id })
    grant.addOIDCScope((prompt.details.missingOIDCScope ?? []).join(' '))
    for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
      grant.addResourceScope(resource, scopes.join(' '))
    }
    return { consent: { grantId: await grant.save() } }
  }
  await provider.interactionFinished(req, res, await result(), { mergeWithLastSubmission: true })
}
