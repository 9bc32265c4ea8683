/** How identity providers deviate from what MCP clients expect, as their documentation and their users say. */

/** Kinds of authorization servers that tests start. */
export type OAuthKind =
  | 'IdpA'
  | 'IdpB'
  | 'Okta'
  | 'Descope'
  | 'Authentik'
  | 'Entra'
  | 'Cognito'
  | 'Google'
  | 'generic'

export interface Quirks {
  /** What the issuer has after the origin. */
  readonly issuer: string
  /** The only path at which there is metadata. */
  readonly discovery: string
  /** What the paths of the endpoints for authorization and tokens begin with. */
  readonly base: string
  readonly keys: string
  /** Where clients register; nowhere if it is undefined. */
  readonly registration?: string
  /** Whether the metadata names the place of registration. */
  readonly hidesRegistration?: true
  /** Scripts may not register clients: requests with an Origin are refused, and there is no CORS. */
  readonly refusesScripts?: true
  /** Where the audience of tokens comes from. `client`: tokens have `client_id` and no `aud`. */
  readonly audience: 'parameter' | 'resource' | 'fixed' | 'client'
  /** Error code for requests with `resource`. */
  readonly resourceError?: string
  /** Scope that the server refuses with `invalid_scope`. */
  readonly refusedScope?: string
  /** The metadata does not have `grant_types_supported`. */
  readonly hidesGrants?: true
  /** The metadata does not announce PKCE, although it works. */
  readonly hidesPkce?: true
  /** The issuer of access tokens, if it is another one than that of the metadata. */
  readonly tokenIssuer?: string
  /** Access tokens are opaque; ID tokens are for the client, and need the scope `openid`. */
  readonly isOpaque?: true
  /** Where users without a session are sent, also with `prompt=none`. Unknown redirect URIs lead to `/error`. */
  readonly signInPage?: string
  /** Whether authorization responses have `iss`. */
  readonly hasResponseIssuer: boolean
}

const realm = '/realms/mcp'

export const quirks: Readonly<Record<OAuthKind, Quirks>> = {
  generic: {
    issuer: '/tenant',
    discovery: '/.well-known/oauth-authorization-server/tenant',
    base: '/tenant',
    keys: '/tenant/keys',
    registration: '/tenant/register',
    audience: 'resource',
    hasResponseIssuer: true,
  },
  IdpA: {
    issuer: '/',
    discovery: '/.well-known/oauth-authorization-server',
    base: '',
    keys: '/.well-known/jwks.json',
    registration: '/oidc/register',
    audience: 'parameter',
    hasResponseIssuer: true,
  },
  IdpB: {
    issuer: realm,
    discovery: `${realm}/.well-known/openid-configuration`,
    base: `${realm}/protocol/openid-connect`,
    keys: `${realm}/protocol/openid-connect/certs`,
    registration: `${realm}/clients-registrations/openid-connect`,
    refusesScripts: true,
    audience: 'fixed',
    hasResponseIssuer: true,
  },
  Okta: {
    issuer: '/oauth2/default',
    discovery: '/oauth2/default/.well-known/openid-configuration',
    base: '/oauth2/default/v1',
    keys: '/oauth2/default/v1/keys',
    // The metadata names it, but it needs a token of an administrator.
    audience: 'parameter',
    hasResponseIssuer: false,
  },
  Descope: {
    issuer: '/v1/apps/agentic/P2abc/MSxyz',
    discovery: '/v1/apps/agentic/P2abc/MSxyz/.well-known/openid-configuration',
    base: '/oauth2/v1/apps',
    keys: '/P2abc/.well-known/jwks.json',
    registration: '/v1/mgmt/mcp/client/P2abc/MSxyz/register',
    hidesRegistration: true,
    audience: 'resource',
    hasResponseIssuer: false,
  },
  Authentik: {
    issuer: '/application/o/mcp/',
    discovery: '/application/o/mcp/.well-known/openid-configuration',
    base: '/application/o',
    keys: '/application/o/mcp/jwks/',
    audience: 'fixed',
    hasResponseIssuer: false,
  },
  Entra: {
    issuer: '/4b7e8a66-0000-4000-8000-5f1c8f6c0001/v2.0',
    discovery: '/4b7e8a66-0000-4000-8000-5f1c8f6c0001/v2.0/.well-known/openid-configuration',
    base: '/4b7e8a66-0000-4000-8000-5f1c8f6c0001/oauth2/v2.0',
    keys: '/4b7e8a66-0000-4000-8000-5f1c8f6c0001/discovery/v2.0/keys',
    audience: 'fixed',
    resourceError: 'AADSTS9010010',
    hidesGrants: true,
    hidesPkce: true,
    tokenIssuer: 'https://sts.windows.net/4b7e8a66-0000-4000-8000-5f1c8f6c0001/',
    hasResponseIssuer: false,
  },
  Cognito: {
    issuer: '/eu-central-1_Abc123',
    discovery: '/eu-central-1_Abc123/.well-known/openid-configuration',
    base: '/oauth2',
    keys: '/eu-central-1_Abc123/.well-known/jwks.json',
    audience: 'client',
    hidesPkce: true,
    signInPage: '/login',
    hasResponseIssuer: false,
  },
  Google: {
    issuer: '',
    discovery: '/.well-known/openid-configuration',
    base: '/o/oauth2/v2',
    keys: '/oauth2/v3/certs',
    audience: 'client',
    resourceError: 'invalid_request',
    refusedScope: 'offline_access',
    isOpaque: true,
    hasResponseIssuer: false,
  },
}
