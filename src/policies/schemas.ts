/**
 * What users may write in frontend, traffic and backend, one line a field. The spec of
 * GatewayPolicy, its types, its CRD and its reference page are assembled from this list; how a
 * field is enforced is in `registry.ts`, and a test holds both lists together.
 */
import { backendAiField } from '../llm/policy/schema.ts'
import { backendMcpField } from '../mcp/policy/schema.ts'
import { accessLogField } from './access-log/schema.ts'
import { apiKeyAuthenticationField } from './api-key-authentication/schema.ts'
import { authorizationField } from './authorization/schema.ts'
import { backendAuthField } from './backend-simple/auth.ts'
import { backendHttpField } from './backend-simple/http.ts'
import { backendTcpField } from './backend-simple/tcp.ts'
import { backendTlsField } from './backend-simple/tls.ts'
import { basicAuthenticationField } from './basic-authentication/schema.ts'
import { corsField } from './cors/schema.ts'
import { csrfField } from './csrf/schema.ts'
import { directResponseField } from './direct-response/schema.ts'
import { extAuthField } from './ext-auth/schema.ts'
import { extProcField } from './ext-proc/schema.ts'
import { frontendHttpField } from './frontend-http/schema.ts'
import { frontendTcpField } from './frontend-tcp/schema.ts'
import { frontendTlsField } from './frontend-tls/schema.ts'
import { headerModifiersField } from './header-modifiers/schema.ts'
import { hostRewriteField } from './host-rewrite/schema.ts'
import { jwtAuthenticationField } from './jwt-authentication/schema.ts'
import { rateLimitField } from './rate-limit/schema.ts'
import { retryField } from './retry/schema.ts'
import { timeoutsField } from './timeouts/schema.ts'
import { tracingField } from './tracing/schema.ts'
import { transformationField } from './transformation/schema.ts'

// The order is the order of the reference pages.
export const policySchemas = [
  frontendTcpField,
  frontendTlsField,
  frontendHttpField,
  accessLogField,
  tracingField,
  transformationField,
  extProcField,
  extAuthField,
  rateLimitField,
  corsField,
  csrfField,
  headerModifiersField,
  hostRewriteField,
  timeoutsField,
  retryField,
  authorizationField,
  jwtAuthenticationField,
  basicAuthenticationField,
  apiKeyAuthenticationField,
  directResponseField,
  backendTcpField,
  backendTlsField,
  backendHttpField,
  backendAuthField,
  backendMcpField,
  backendAiField,
] as const
