/** What users write about the sign-in of MCP clients, on a backend and on a route. */
import type { References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { choice, type Infer, json, map, object, optional } from '../../../../ground/schema/field.ts'
import { clientSecretReference } from '../../../../ground/schema/shapes/references.ts'
import { shortString } from '../../../../ground/schema/strings.ts'
import { clientSecretOf } from '../../../policies/client-secret.ts'
import type { PolicyProblem } from '../../../policies/define.ts'
import type { McpSignInConfig } from './config.ts'
import { metadataMember } from './oauth-metadata.ts'
import type { McpIdp } from './providers.ts'

const provider = choice('McpIDP', {
  IdpA: 'identity provider A',
  IdpB: 'identity provider B',
  Okta: 'Okta',
  Descope: 'Descope',
  Authentik: 'authentik',
  Entra: 'Microsoft Entra ID',
  Cognito: 'Amazon Cognito',
  Google: 'Google',
} satisfies Readonly<Record<McpIdp, string>>)

export const signInFields = {
  resourceMetadata: optional(
    map(json(), { max: 64 }),
    'Members of the protected resource metadata document (RFC 9728).',
  ),
  provider: optional(
    provider,
    'Identity provider whose deviations from the standards are corrected.',
  ),
  clientId: optional(
    shortString,
    'Client id that clients get when they register, for providers at which they cannot register.',
  ),
  clientSecretRef: optional(
    clientSecretReference,
    'Secret of `clientId`. The gateway adds it to requests for tokens.',
  ),
}

export const mcpSignIn = object('JWTMCPConfig', signInFields)
type SignInSpec = Infer<typeof mcpSignIn>

/** Where `compileSignIn` reports what it finds; paths begin with `path`. */
interface Report {
  readonly path: string
  readonly problems: PolicyProblem[]
  readonly notes: string[]
  readonly secrets: SecretRef[]
}

type Issuer = Pick<McpSignInConfig, 'issuer' | 'audiences' | 'target'>

/** Compiles the settings. If the client secret is missing, sign-ins fail at the provider; tokens are checked as before. */
export function compileSignIn(
  { resourceMetadata = {}, provider, clientId, clientSecretRef }: SignInSpec,
  issuer: Issuer,
  references: References,
  { path, problems, notes, secrets }: Report,
): McpSignInConfig {
  const secret = clientSecretRef && clientSecretOf(clientSecretRef, references)
  if (typeof secret === 'string') {
    problems.push({ path: `${path}.clientSecretRef`, message: secret, partial: true })
  } else if (secret !== undefined) secrets.push(secret)
  if (clientSecretRef !== undefined && clientId === undefined) {
    const message = 'is only used with clientId'
    problems.push({ path: `${path}.clientSecretRef`, message, partial: true })
  }
  if (provider !== undefined && issuer.issuer === undefined) {
    notes.push(`${path}: provider ${provider} has no effect without issuer`)
  } else if (clientId !== undefined && issuer.issuer === undefined) {
    notes.push(`${path}: clientId has no effect without issuer`)
  }
  if (clientId === undefined && provider !== undefined && withoutRegistration.includes(provider)) {
    notes.push(`${path}: clients cannot register at ${provider}; set clientId`)
  }
  const metadata = Object.entries(resourceMetadata)
  return {
    ...issuer,
    ...(provider && { provider }),
    ...(clientId !== undefined && { clientId }),
    ...(typeof secret === 'object' && { clientSecret: secret.digest }),
    metadata: Object.fromEntries(metadata.map(([name, value]) => [metadataMember(name), value])),
  }
}

const withoutRegistration: readonly McpIdp[] = ['Authentik', 'Entra', 'Cognito', 'Google']
