import { compileCel, gatewayVariables, mcpRuleFields } from '../../../cel/index.ts'
import type { References } from '../../../model/references.ts'
import { compile as compileAuthorization } from '../../../policies/authorization/compile.ts'
import type { Compiled, PolicyProblem } from '../../../policies/define.ts'
import { fetchedKeys } from '../../../policies/jwt-authentication/keys.ts'
import { metadataMember } from '../auth/resource-metadata.ts'
import type { BackendMcpConfig, McpAuthenticationConfig } from './config.ts'
import type { BackendMcpSpec } from './schema.ts'

type AuthorizationSpec = NonNullable<BackendMcpSpec['authorization']>
type AuthenticationSpec = NonNullable<BackendMcpSpec['authentication']>

/**
 * Authentication is always in force: without a usable key Strict refuses everyone, and the status
 * says why.
 */
export function compile(
  { authorization, authentication }: BackendMcpSpec,
  references: References,
): Compiled<BackendMcpConfig> {
  const problems = authorization === undefined ? [] : ruleProblems(authorization)
  // Rules that cannot be judged close what they cover; keys that are missing close it by themselves.
  const protects = problems.length === 0
  const notes: string[] = []
  const config: BackendMcpConfig = {
    ...(authorization && { authorization: compileAuthorization(authorization).config }),
    ...(authentication && {
      authentication: compileAuthentication(authentication, references, problems, notes),
    }),
  }
  return { config, problems, notes, ...(protects && { protects }) }
}

/** Variables of rules about tools, prompts and resources. */
const variables = new Map([...gatewayVariables, ['mcp', mcpRuleFields]])

/** What reads well and can never be known here; what does not compile at all is told elsewhere. */
function ruleProblems({ policy }: AuthorizationSpec): PolicyProblem[] {
  return policy.matchExpressions.flatMap((source, at) => {
    if (!compileCel(source, { variables: gatewayVariables }).ok) return []
    const outcome = compileCel(source, { variables })
    if (outcome.ok) return []
    const path = `authorization.policy.matchExpressions[${at}]`
    return outcome.problems.map(({ message }) => ({ path, message }))
  })
}

function compileAuthentication(
  spec: AuthenticationSpec,
  references: References,
  problems: PolicyProblem[],
  notes: string[],
): McpAuthenticationConfig {
  const { mode = 'Strict', issuer, audiences, provider, resourceMetadata = {}, jwks } = spec
  const path = 'authentication.jwks'
  const { keys, failure, pending, skipped = [] } = fetchedKeys(jwks, references)
  if (failure !== undefined) problems.push({ path, message: `${failure}; no token is accepted` })
  if (pending !== undefined) notes.push(`${path}: ${pending}`)
  for (const message of skipped) problems.push({ path, message, partial: true })
  notes.push(...openPoints(spec).map((text) => `authentication: ${text}`))
  const issuerProblem = issuer === undefined ? undefined : problemOfIssuer(issuer)
  if (issuerProblem !== undefined) {
    problems.push({ path: 'authentication.issuer', message: issuerProblem, partial: true })
  }
  const target = references.backend(jwks.backendRef)
  return {
    mode,
    ...(issuer !== undefined && { issuer }),
    ...(audiences && { audiences }),
    keys,
    ...(provider && { provider }),
    metadata: Object.fromEntries(
      Object.entries(resourceMetadata).map(([name, value]) => [metadataMember(name), value]),
    ),
    ...(typeof target !== 'string' && target.type !== 'invalid' && { target }),
  }
}

/** What is allowed, and perhaps not meant. */
function openPoints({ issuer, audiences, provider }: AuthenticationSpec): string[] {
  const found: string[] = []
  if (issuer === undefined) {
    found.push('without issuer, the iss claim is not checked and clients are told no server')
  }
  if (audiences === undefined) {
    found.push('without audiences, tokens that are meant for other services are accepted')
  }
  if (provider !== undefined && issuer === undefined) {
    found.push(`${provider} cannot be adapted to without issuer`)
  }
  return found
}

/** Tokens are compared with any text; only a URL leads to the metadata of an issuer. */
function problemOfIssuer(issuer: string): string | undefined {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  return isWeb ? undefined : 'is no URL of http or https: clients cannot find its server'
}
