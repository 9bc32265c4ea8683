/** The envelope of a modern request: members of `params._meta` that replace the `initialize` handshake. */
import { type JsonNode, member, textOf } from '../json/node.ts'
import type { McpNotification, McpRequest } from '../message.ts'
import { metaKeys } from '../meta-keys.ts'

export interface Envelope {
  readonly version: string
  /** The client's capabilities, an object. */
  readonly capabilities: JsonNode | undefined
  readonly clientInfo: JsonNode | undefined
  readonly logLevel: string | undefined
}

/** Whether the message claims to be modern. The claim may be incomplete. */
export function hasEnvelope({ params }: Pick<McpRequest, 'params'>): boolean {
  return member(member(params, '_meta'), metaKeys.version) !== undefined
}

/** Reads the envelope, or returns which of its members is missing or has the wrong type. */
export function readEnvelope(message: McpRequest | McpNotification): Envelope | string {
  const { text, params, kind } = message
  const meta = member(params, '_meta')
  const version = textOf(text, member(meta, metaKeys.version))
  const capabilities = member(meta, metaKeys.capabilities)
  const clientInfo = member(meta, metaKeys.clientInfo)
  const level = member(meta, metaKeys.logLevel)
  const problem = (key: string, what: string) => `_meta["${key}"] ${what}`
  if (version === undefined) return problem(metaKeys.version, 'must be a string')
  // Notifications need no capabilities, because nothing is asked of the client.
  if (capabilities?.type !== 'object' && (kind === 'request' || capabilities !== undefined)) {
    return problem(metaKeys.capabilities, 'must be an object')
  }
  if (clientInfo !== undefined && !isImplementation(clientInfo)) {
    return problem(metaKeys.clientInfo, 'must be an object with a name and a version')
  }
  if (level !== undefined && level.type !== 'string') {
    return problem(metaKeys.logLevel, 'must be a string')
  }
  return { version, capabilities, clientInfo, logLevel: textOf(text, level) }
}

const isImplementation = (node: JsonNode): boolean =>
  ['name', 'version'].every((key) => member(node, key)?.type === 'string')
