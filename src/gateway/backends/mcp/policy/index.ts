/** `backend.mcp`: authentication and authorization of MCP clients, and what applies to their calls. */
import type { References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { type Infer, object, optional, required } from '../../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../../ground/schema/rules.ts'
import {
  audiences,
  authorization,
  jwtMode,
  remoteJwks,
} from '../../../../ground/schema/shapes/authentication.ts'
import { shortString } from '../../../../ground/schema/strings.ts'
import { compile as compileAuthorization } from '../../../policies/authorization/index.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../../../policies/define.ts'
import { fetchedKeys } from '../../../policies/jwt-authentication/keys.ts'
import { rateLimitSchema } from '../../../policies/rate-limit/index.ts'
import { promptGuard } from '../../ai/policy/schema.ts'
import type { McpAuthenticationConfig } from '../auth/config.ts'
import { compileSignIn, signInFields } from '../auth/schema.ts'
import { approval, callLimits, toolGuard } from './calls-schema.ts'
import { compileCalls } from './compile-calls.ts'
import type { BackendMcpConfig } from './config.ts'
import { guardrails } from './guardrails-schema.ts'

const mcpAuthentication = object('MCPAuthentication', {
  ...signInFields,
  issuer: optional(shortString, 'Value of the iss claim; not checked if not set.'),
  audiences: optional(
    audiences,
    'The aud claim must have one of these values. If not set, any audience is accepted.',
  ),
  jwks: required(remoteJwks, 'Keys with which the issuer signs.'),
  mode: optional(jwtMode, { doc: 'What happens without a valid token.', default: 'Strict' }),
})

const backendMcpSchema = object(
  'BackendMCP',
  {
    authorization: optional(
      authorization,
      'Evaluated for each tool, prompt and resource. Items that fail are removed from lists, and calls of them are refused.',
    ),
    authentication: optional(mcpAuthentication, 'Validates tokens of MCP clients.'),
    promptGuard: optional(promptGuard, {
      doc: 'Guards: `request` for arguments of tools and prompts, `response` for results of tools, prompts and resources. Responses can also be refused. Beyond the interface of agentgateway.',
    }),
    guardrails: optional(
      guardrails,
      'Services that see MCP messages, and may change or refuse them.',
    ),
    toolGuard: optional(
      toolGuard,
      'Searches what servers list for orders to models. Beyond the interface of agentgateway.',
    ),
    rateLimit: optional(
      rateLimitSchema,
      'Limits calls of tools. Expressions can read `mcp`, such as `mcp.tool.name` or `mcp.sessionId`. A refused call gets an error result. Beyond the interface of agentgateway.',
    ),
    calls: optional(callLimits, 'Limits of each call. Beyond the interface of agentgateway.'),
    approval: optional(
      approval,
      'Calls that a person must approve first. Beyond the interface of agentgateway.',
    ),
  },
  {
    rules: [
      atLeastOneOf(
        'authorization',
        'authentication',
        'promptGuard',
        'guardrails',
        'toolGuard',
        'rateLimit',
        'calls',
        'approval',
      ),
    ],
  },
)
type BackendMcpSpec = Infer<typeof backendMcpSchema>
type AuthenticationSpec = NonNullable<BackendMcpSpec['authentication']>

/**
 * Compiles the policy. Authentication is enforced even if there is no usable key: then mode Strict refuses
 * all clients.
 */
function compile(spec: BackendMcpSpec, references: References): Compiled<BackendMcpConfig> {
  const { authorization, authentication } = spec
  const problems: PolicyProblem[] = []
  const notes: string[] = []
  const secrets: SecretRef[] = []
  const calls = compileCalls(spec, references)
  if (calls !== undefined && calls.config === undefined) return { problems: calls.problems }
  problems.push(...(calls?.problems ?? []))
  const config: BackendMcpConfig = {
    ...(authorization && { authorization: compileAuthorization(authorization).config }),
    ...(authentication && {
      authentication: compileAuthentication(authentication, references, {
        problems,
        notes,
        secrets,
      }),
    }),
    ...(calls?.config && { calls: calls.config }),
  }
  // Missing keys need not close the backend. Invalid rules do; derive/expressions.ts finds them.
  return {
    config,
    problems,
    notes,
    protects: true,
    secrets: [...secrets, ...(calls?.secrets ?? [])],
  }
}

function compileAuthentication(
  spec: AuthenticationSpec,
  references: References,
  report: {
    readonly problems: PolicyProblem[]
    readonly notes: string[]
    readonly secrets: SecretRef[]
  },
): McpAuthenticationConfig {
  const { mode = 'Strict', issuer, audiences, jwks } = spec
  const { problems, notes } = report
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
  const signIn = compileSignIn(
    spec,
    {
      ...(issuer !== undefined && { issuer }),
      ...(audiences && { audiences }),
      ...(typeof target !== 'string' && target.type !== 'invalid' && { target }),
    },
    references,
    { ...report, path: 'authentication' },
  )
  return { ...signIn, mode, keys }
}

/** Notes about settings that are allowed but may be unintended. */
function openPoints({ issuer, audiences }: AuthenticationSpec): string[] {
  const found: string[] = []
  if (issuer === undefined) {
    found.push('without issuer, the iss claim is not checked and clients are told no server')
  }
  if (audiences === undefined) {
    found.push('without audiences, tokens that are meant for other services are accepted')
  }
  return found
}

/** Tokens may have an issuer of any form, but finding its metadata requires a URL. */
function problemOfIssuer(issuer: string): string | undefined {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  return isWeb ? undefined : 'is no URL of http or https: clients cannot find its server'
}

/** Authentication and authorization of MCP clients. */
export const backendMcp = definePolicy({
  section: 'backend',
  field: 'mcp',
  schema: backendMcpSchema,
  doc: 'Settings for MCP. They apply to backends of type mcp only.',
  security: true,
  expressions: [{ path: '', point: 'mcpItem' }],
  compile,
  apply: () => import('./apply.ts'),
})
