/** Protected resource metadata (RFC 9728), which tells clients where to get tokens. */
import type { McpSignInConfig } from './config.ts'
import { isRelayed } from './providers.ts'

/** The URL of the MCP server as the client sees it. */
export interface ClientView {
  /** Scheme, host and port, such as `https://mcp.example.com`. */
  readonly origin: string
  /** Path of the request as sent, without the query. */
  readonly path: string
  /** The query as sent, without the question mark. */
  readonly query: string
  /** Returns the key that all proxies share; undefined until it has arrived. */
  readonly sessionKey: () => Uint8Array | undefined
}

/** Converts a name to snake case: `scopesSupported` becomes `scopes_supported`. */
export function metadataMember(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/^_/, '')
}

/** Returns the URL that tokens have for the MCP server: the configured URL, or else that of the request. */
function resourceUrl({ metadata }: McpSignInConfig, origin: string, path: string): string {
  const stated = metadata.resource
  return typeof stated === 'string' ? stated : `${origin}${path}`
}

/** The origin at which clients reach the gateway. */
export function publicOrigin({ metadata }: McpSignInConfig, origin: string): string {
  const stated = metadata.resource
  return typeof stated === 'string' && URL.canParse(stated) ? new URL(stated).origin : origin
}

/** Builds the document. If the gateway relays sign-ins, it is the authorization server in it. */
export function resourceMetadata(
  config: McpSignInConfig,
  origin: string,
  path: string,
): Readonly<Record<string, unknown>> {
  const { issuer, metadata } = config
  const resource = resourceUrl(config, origin, path)
  const server = isRelayed(config) ? resource : issuer
  return {
    resource,
    ...(issuer !== undefined && server !== undefined && { authorization_servers: [server] }),
    mcp_protocol_version: '2025-06-18',
    resource_type: 'mcp-server',
    ...metadata,
  }
}

// Paths of OAuth metadata: a well-known prefix and the path of the resource (RFC 9728 section 3.1,
// RFC 8414 section 3.1). Endpoints of the gateway as authorization server are below its metadata.

export interface MetadataPath {
  /** Metadata of the MCP server or the authorization server, or an endpoint of the latter. */
  readonly document: 'resource' | 'server' | Endpoint | 'callback'
  /** Path of the MCP server, such as `/mcp`; empty for the root. */
  readonly resource: string
  /** The key of the client's redirect URI. Set for callbacks only. */
  readonly redirectKey?: string
}

/** Endpoints that clients find in the metadata. */
type Endpoint = 'registration' | 'authorization' | 'token'

/** What all paths of OAuth metadata begin with. */
export const metadataPrefix = '/.well-known/oauth-'
const resourcePrefix = `${metadataPrefix}protected-resource`
const serverPrefix = `${metadataPrefix}authorization-server`
const endpointSuffix = /\/client-(?:(registration|authorization|token)|callback\/([\w-]{43}))$/

/** Parses a metadata path without its query. Returns undefined if the path is another one. */
export function readMetadataPath(path: string): MetadataPath | undefined {
  if (!path.startsWith(metadataPrefix)) return undefined
  const ofResource = below(path, resourcePrefix)
  if (ofResource !== undefined) return { document: 'resource', resource: ofResource }
  const ofServer = below(path, serverPrefix)
  if (ofServer === undefined) return undefined
  const found = endpointSuffix.exec(ofServer)
  if (found === null) return { document: 'server', resource: ofServer }
  const resource = ofServer.slice(0, found.index)
  const [, endpoint, redirectKey] = found
  return redirectKey === undefined
    ? { document: endpoint as Endpoint, resource }
    : { document: 'callback', resource, redirectKey }
}

const openIdPath = '/.well-known/openid-configuration'

/** Whether this is a path of OAuth metadata or OpenID Connect Discovery (MCP authorization). */
export function isDiscoveryPath(path: string): boolean {
  if (!path.includes('/.well-known/o')) return false
  return (
    readMetadataPath(path) !== undefined ||
    path.startsWith(`${openIdPath}/`) ||
    path.endsWith(openIdPath)
  )
}

export function resourceMetadataPath(resource: string): string {
  return `${resourcePrefix}${resource}`
}

/** The gateway as authorization server of the MCP server at `path`, as the client sees it. */
export class GatewayServer {
  readonly issuer: string
  readonly #base: string

  constructor(config: McpSignInConfig, origin: string, path: string) {
    this.issuer = resourceUrl(config, origin, path)
    this.#base = `${publicOrigin(config, origin)}${serverPrefix}${path}/client-`
  }

  endpoint(name: Endpoint): string {
    return `${this.#base}${name}`
  }

  /** The callback that replaces a client's redirect URI at the provider. */
  callback(redirectKey: string): string {
    return `${this.#base}callback/${redirectKey}`
  }

  isCallback(uri: unknown): boolean {
    return typeof uri === 'string' && uri.startsWith(this.callback(''))
  }
}

function below(path: string, prefix: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  if (rest === '' || rest === '/') return ''
  return rest.startsWith('/') ? rest : undefined
}
