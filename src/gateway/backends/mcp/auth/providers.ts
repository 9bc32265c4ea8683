/**
 * Identity providers whose deviations from the standards the gateway corrects while MCP clients sign in.
 * Sources: the documentation of the providers, and reports of their users.
 */

/** Provider names as users write them. */
export const providerNames = [
  'IdpA',
  'IdpB',
  'Okta',
  'Descope',
  'Authentik',
  'Entra',
  'Cognito',
  'Google',
] as const
export type McpIdp = (typeof providerNames)[number]

interface Adaptation {
  /** Set if the metadata of OpenID Connect Discovery is requested before that of RFC 8414. */
  readonly isOpenIdFirst?: true
  /** Set if the provider ignores `resource` (RFC 8707) and needs `audience` in authorization requests. */
  readonly needsAudience?: true
  /** Set if the provider refuses requests that have `resource`. */
  readonly refusesResource?: true
  /** Set if PKCE with S256 works, but the metadata does not say so. Clients refuse such metadata. */
  readonly hidesPkce?: true
  /** Set if access tokens have `client_id` in place of `aud`. */
  readonly namesClientOnly?: true
  /** Set if access tokens are opaque, so that clients get the ID token in their place. */
  readonly hasOpaqueTokens?: true
  /** Path to which an authorization request leads if the redirect URI is accepted and the user must sign in. */
  readonly signInPath?: string
  /** Returns where clients register, if the metadata does not say it. */
  registration?(issuer: string): URL | undefined
}

const adaptations: Readonly<Record<McpIdp, Adaptation>> = {
  IdpA: { needsAudience: true },
  IdpB: {
    isOpenIdFirst: true,
    registration: (issuer) =>
      new URL(`${issuer.replace(/\/$/, '')}/clients-registrations/openid-connect`),
  },
  Okta: { isOpenIdFirst: true, needsAudience: true },
  Descope: { isOpenIdFirst: true, registration: registrationAtDescope },
  Authentik: { isOpenIdFirst: true },
  Entra: { isOpenIdFirst: true, refusesResource: true, hidesPkce: true },
  Cognito: { isOpenIdFirst: true, hidesPkce: true, namesClientOnly: true, signInPath: '/login' },
  Google: { isOpenIdFirst: true, refusesResource: true, hasOpaqueTokens: true },
}

const none: Adaptation = {}

export const adaptationOf = (provider: McpIdp | undefined): Adaptation =>
  provider === undefined ? none : adaptations[provider]

/** Each MCP server of a project has an issuer and a place for registrations. */
function registrationAtDescope(issuer: string): URL | undefined {
  const url = URL.parse(issuer)
  const found = /^\/v1\/apps\/agentic\/([^/]+)\/([^/]+)\/?$/.exec(url?.pathname ?? '')
  return found === null
    ? undefined
    : new URL(`${url?.origin}/v1/mgmt/mcp/client/${found[1]}/${found[2]}/register`)
}

/** Rules for tokens of a provider, in addition to keys and audiences. */
interface TokenRules {
  readonly issuer?: string
  /** Set if `client_id` of tokens without `aud` is their audience. */
  readonly isClientAudience?: true
}

/** Returns the rules by which tokens of an issuer are verified; a token must satisfy one of them. */
export function tokenRules(issuer: string | undefined, provider: McpIdp | undefined): TokenRules[] {
  const more = adaptationOf(provider).namesClientOnly && { isClientAudience: true as const }
  if (issuer === undefined) return [{ ...more }]
  // Applications of Entra that ask for tokens of version 1 get this issuer, with the same keys.
  const tenant = /^\/([^/]+)\/v2\.0\/?$/.exec(URL.parse(issuer)?.pathname ?? '')?.[1]
  return provider === 'Entra' && tenant !== undefined
    ? [{ issuer }, { issuer: `https://sts.windows.net/${tenant}/` }]
    : [{ issuer, ...more }]
}

/** What decides whether the gateway relays sign-ins. */
interface RelaySettings {
  readonly provider?: McpIdp
  readonly clientId?: string
}

/** Whether the gateway takes the place of the issuer for clients. Otherwise they use the issuer directly. */
export const isRelayed = ({ provider, clientId }: RelaySettings): boolean =>
  provider !== undefined || clientId !== undefined
