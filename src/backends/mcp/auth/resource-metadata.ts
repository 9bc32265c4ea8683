/** Metadata of a protected resource (RFC 9728): where clients get tokens for it. */
import type { McpAuthenticationConfig } from '../policy/config.ts'

/** What the client calls the MCP server. */
export interface ClientView {
  /** Scheme, host and port, such as `https://mcp.example.com`. */
  readonly origin: string
  /** Path of the request as sent, without the query. */
  readonly path: string
}

/** `scopesSupported` and `scopes_supported` alike are the member `scopes_supported`. */
export function metadataMember(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/^_/, '')
}

/** The URL by which tokens name the MCP server; what the user says goes before what was asked for. */
export function resourceUrl(
  { metadata }: McpAuthenticationConfig,
  origin: string,
  path: string,
): string {
  const stated = metadata.resource
  return typeof stated === 'string' ? stated : `${origin}${path}`
}

/** The origin under which clients reach the gateway. */
export function publicOrigin({ metadata }: McpAuthenticationConfig, origin: string): string {
  const stated = metadata.resource
  return typeof stated === 'string' && URL.canParse(stated) ? new URL(stated).origin : origin
}

/**
 * With a provider that has to be adapted to, the gateway itself is named as authorization server, so
 * that clients fetch its metadata here.
 */
export function resourceMetadata(
  config: McpAuthenticationConfig,
  origin: string,
  path: string,
): Readonly<Record<string, unknown>> {
  const { issuer, provider, metadata } = config
  const resource = resourceUrl(config, origin, path)
  const server = provider === undefined ? issuer : resource
  return {
    resource,
    ...(issuer !== undefined && server !== undefined && { authorization_servers: [server] }),
    mcp_protocol_version: '2025-06-18',
    resource_type: 'mcp-server',
    ...metadata,
  }
}
