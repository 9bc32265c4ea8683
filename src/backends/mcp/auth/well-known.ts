/**
 * Paths at which clients look for metadata of OAuth (RFC 9728 section 3.1, RFC 8414 section 3.1):
 * the path of the resource comes after a prefix of its own.
 */

export interface MetadataPath {
  /** `resource`: of the MCP server. `server`: of the authorization server. `registration`: clients. */
  readonly document: 'resource' | 'server' | 'registration'
  /** Path of the MCP server, such as `/mcp`; empty for the root of the host. */
  readonly resource: string
}

const resourcePrefix = '/.well-known/oauth-protected-resource'
const serverPrefix = '/.well-known/oauth-authorization-server'
const registrationSuffix = '/client-registration'

/** Undefined for every other path. `path` is as sent, without the query. */
export function readMetadataPath(path: string): MetadataPath | undefined {
  if (!path.startsWith('/.well-known/oauth-')) return undefined
  const ofResource = below(path, resourcePrefix)
  if (ofResource !== undefined) return { document: 'resource', resource: ofResource }
  const ofServer = below(path, serverPrefix)
  if (ofServer === undefined) return undefined
  if (!ofServer.endsWith(registrationSuffix)) return { document: 'server', resource: ofServer }
  const resource = ofServer.slice(0, -registrationSuffix.length)
  return { document: 'registration', resource }
}

const openIdPath = '/.well-known/openid-configuration'

/** Does a client look for metadata there, OpenID Connect Discovery included (MCP authorization)? */
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

export function registrationPath(resource: string): string {
  return `${serverPrefix}${resource}${registrationSuffix}`
}

function below(path: string, prefix: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  if (rest === '' || rest === '/') return ''
  return rest.startsWith('/') ? rest : undefined
}
