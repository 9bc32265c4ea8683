/**
 * The MCP server as an OAuth resource server: the metadata by which clients find the authorization server (MCP
 * authorization, revisions 2025-03-26 to 2026-07-28), and the challenges that lead to it.
 *
 *   GET  /.well-known/oauth-protected-resource/<path>                          RFC 9728
 *   GET  /.well-known/oauth-authorization-server/<path>                        RFC 8414, from the issuer
 *   POST /.well-known/oauth-authorization-server/<path>/client-registration    RFC 7591, to the issuer
 *   GET  /.well-known/oauth-authorization-server/<path>/client-authorization   RFC 6749, to the issuer
 *   GET  /.well-known/oauth-authorization-server/<path>/client-callback/<key>  to the client
 *   POST /.well-known/oauth-authorization-server/<path>/client-token           RFC 6749, to the issuer
 */
import type {
  Callouts,
  Exchange,
  SecretValues,
  Verdict,
} from '../../../../ground/exchange/exchange.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import { clientSecretText } from '../../../tokens/client-secret-text.ts'
import { AuthorizationServer } from './authorization-server.ts'
import type { McpSignInConfig } from './config.ts'
import {
  type ClientView,
  type MetadataPath,
  publicOrigin,
  readMetadataPath,
  resourceMetadata,
  resourceMetadataPath,
} from './oauth-metadata.ts'
import { metadataResponse, preflight, wrongMethod } from './responses.ts'

export class ResourceServer {
  readonly #config: McpSignInConfig
  readonly #server: AuthorizationServer
  /** Parameter of challenges that names the scopes to ask for, with a comma in front. */
  readonly scope: string

  /** Throws if the client secret has not arrived. */
  constructor(
    config: McpSignInConfig,
    callouts: Callouts,
    secrets: SecretValues,
    host: PolicyHost,
  ) {
    const { clientSecret } = config
    const secret = clientSecret === undefined ? undefined : clientSecretText(clientSecret, secrets)
    this.#config = config
    this.scope = scopeParameter(config.metadata.scopes_supported)
    this.#server = new AuthorizationServer(config, callouts, host, secret)
  }

  /** Serves a request for metadata, or to an endpoint below it. Returns undefined for all other paths. */
  serve(exchange: Exchange, client: ClientView): Verdict | Promise<Verdict> | undefined {
    const asked = readMetadataPath(client.path)
    return asked && this.#serve(asked, exchange, client)
  }

  #serve(asked: MetadataPath, exchange: Exchange, client: ClientView): Verdict | Promise<Verdict> {
    const { document, resource } = asked
    const { method } = exchange.request
    const allowed = document === 'registration' || document === 'token' ? 'POST' : 'GET'
    if (method === 'OPTIONS') return preflight(allowed)
    if (method !== allowed && !(method === 'HEAD' && allowed === 'GET')) return wrongMethod(allowed)
    return document === 'resource'
      ? metadataResponse(resourceMetadata(this.#config, client.origin, resource))
      : this.#server.serve(asked, exchange, client)
  }

  /** Parameter of challenges with the URL of the resource metadata. */
  metadataParameter({ origin, path }: Pick<ClientView, 'origin' | 'path'>): string {
    const base = publicOrigin(this.#config, origin)
    const resource = path === '/' ? '' : path
    return `resource_metadata="${quotable(`${base}${resourceMetadataPath(resource)}`)}"`
  }
}

/** A scope as RFC 6749 section 3.3 defines it. */
const scopeToken = /^[!#-[\]-~]+$/

function scopeParameter(supported: unknown): string {
  if (!Array.isArray(supported)) return ''
  const scopes = supported.filter((one) => typeof one === 'string' && scopeToken.test(one))
  return scopes.length === 0 ? '' : `, scope="${scopes.join(' ')}"`
}

/** Percent-encodes characters that would end a quoted string or are not allowed in URLs. */
function quotable(url: string): string {
  return url.replace(
    /[^!#-[\]-~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}
