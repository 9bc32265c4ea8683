/** Adapts the issuer's metadata (RFC 8414) to the gateway, which takes the issuer's place. */
import type { JsonObject } from '../../../../ground/base/json-object.ts'
import type { McpSignInConfig } from './config.ts'
import { endpointIn } from './issuer-metadata.ts'
import type { GatewayServer } from './oauth-metadata.ts'
import { adaptationOf } from './providers.ts'
import { registrationEndpoint } from './registration.ts'

/**
 * Members that do not hold for the gateway: statements that the issuer signed, and requests that a relay
 * cannot adapt, because the client signs them, binds them to a URL, or sends them to the issuer itself.
 */
const removed = new Set([
  'authorization_encryption_alg_values_supported',
  'authorization_encryption_enc_values_supported',
  'authorization_signing_alg_values_supported',
  'client_id_metadata_document_supported',
  'dpop_signing_alg_values_supported',
  'mtls_endpoint_aliases',
  'pushed_authorization_request_endpoint',
  'registration_endpoint',
  'require_pushed_authorization_requests',
  'require_signed_request_object',
  'signed_metadata',
  'tls_client_certificate_bound_access_tokens',
  'token_endpoint_auth_signing_alg_values_supported',
])
const removedPrefix = 'request_object_'

/** Client authentication bound to its receiver. The gateway cannot relay it to the provider. */
const boundMethods = new Set([
  'client_secret_jwt',
  'private_key_jwt',
  'self_signed_tls_client_auth',
  'tls_client_auth',
])

const grantTypes = ['authorization_code', 'refresh_token']

/** Returns a message if the metadata lacks an endpoint. */
export function adaptMetadata(
  metadata: JsonObject,
  config: McpSignInConfig,
  server: GatewayServer,
): JsonObject | string {
  for (const name of ['authorization', 'token']) {
    if (endpointIn(metadata, `${name}_endpoint`) === undefined) {
      return `the issuer has no ${name} endpoint`
    }
  }
  const { provider, clientId } = config
  const isFixed = clientId !== undefined
  const registers = isFixed || registrationEndpoint(config, metadata) !== undefined
  // The gateway knows the endpoint of IdpB, but it is only there if the realm allows registrations.
  if (!isFixed && provider === 'IdpB' && metadata.registration_endpoint === undefined) {
    return 'the issuer has no registration endpoint'
  }
  const kept = Object.entries(metadata).filter(
    ([name]) => !removed.has(name) && !name.startsWith(removedPrefix),
  )
  const methods = metadata.token_endpoint_auth_methods_supported
  return {
    ...Object.fromEntries(kept),
    issuer: server.issuer,
    authorization_endpoint: server.endpoint('authorization'),
    token_endpoint: server.endpoint('token'),
    ...(registers && { registration_endpoint: server.endpoint('registration') }),
    ...(Array.isArray(methods) && {
      token_endpoint_auth_methods_supported: methods.filter((one) => !boundMethods.has(one)),
    }),
    ...(isFixed && { token_endpoint_auth_methods_supported: ['none'] }),
    ...(adaptationOf(provider).hidesPkce && { code_challenge_methods_supported: ['S256'] }),
    // Clients renew tokens only if they read that they can. The default of RFC 8414 section 2 says the opposite.
    grant_types_supported: metadata.grant_types_supported ?? grantTypes,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    authorization_response_iss_parameter_supported: true,
  }
}
