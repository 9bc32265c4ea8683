/** Decides to which era a POST belongs. The body decides; headers must agree with it. */
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'
import { codes } from '../answers.ts'
import type { McpMessage, McpNotification, McpRequest } from '../message.ts'
import { metaKeys } from '../meta-keys.ts'
import { type Envelope, hasEnvelope, readEnvelope } from './envelope.ts'
import { headerProblem } from './headers.ts'
import { isModern, legacyVersions, modernVersions, supportedVersions } from './versions.ts'

/** Why a POST is refused with status 400. */
interface EraProblem {
  /** Id of the refused request as JSON, if it is known. */
  readonly id: string | undefined
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** A message of the modern era whose envelope and headers are valid. */
export interface ModernMessage {
  readonly message: McpRequest | McpNotification
  readonly envelope: Envelope
}

/** Undefined: the POST belongs to the legacy era. */
type Classified = ModernMessage | EraProblem | undefined

export function classify(
  headers: HeaderFields,
  messages: readonly McpMessage[],
  isBatch: boolean,
): Classified {
  const [message] = messages
  const stated = headers.lines('mcp-protocol-version')
  const id = message?.kind === 'request' && !isBatch ? message.id : undefined
  if (typeof stated === 'object') {
    const why = 'there is more than one header MCP-Protocol-Version'
    return { id, code: codes.headerMismatch, message: why }
  }
  const isStatedModern = stated !== undefined && isModern(stated)
  if (isBatch || message === undefined || message.kind === 'response') {
    const claims = messages.some((one) => one.kind !== 'response' && hasEnvelope(one))
    if (!claims && !isStatedModern) return unknownVersion(stated, id)
    const what = isBatch ? 'batches' : 'responses of clients'
    return { id, code: codes.invalidRequest, message: `this version of MCP has no ${what}` }
  }
  if (hasEnvelope(message)) return readModern(headers, message, id)
  if (!isStatedModern || !modernVersions.includes(stated)) return unknownVersion(stated, id)
  if (message.kind === 'request' && message.method === 'initialize') {
    const why = 'initialize belongs to earlier versions than the header MCP-Protocol-Version'
    return { id, code: codes.headerMismatch, message: why }
  }
  const missing = `_meta["${metaKeys.version}"] is missing`
  return { id, code: codes.invalidParams, message: `Invalid params: ${missing}` }
}

function readModern(
  headers: HeaderFields,
  message: McpRequest | McpNotification,
  id: string | undefined,
): ModernMessage | EraProblem {
  const envelope = readEnvelope(message)
  if (typeof envelope === 'string') {
    return { id, code: codes.invalidParams, message: `Invalid params: ${envelope}` }
  }
  const { version } = envelope
  const problem = headerProblem(headers, message, version)
  if (problem !== undefined) {
    return { id, code: codes.headerMismatch, message: `Header mismatch: ${problem}` }
  }
  if (modernVersions.includes(version)) return { message, envelope }
  // The same versions as in the response to `server/discover`.
  const data = { supported: modernVersions, requested: version }
  return { id, code: codes.unsupportedVersion, message: 'Unsupported protocol version', data }
}

/** Refuses a message without an envelope whose header names a version that does not exist. */
function unknownVersion(stated: string | undefined, id: string | undefined) {
  if (stated === undefined || legacyVersions.includes(stated)) return undefined
  const data = { supported: supportedVersions, requested: stated }
  const message = `Unsupported protocol version: ${stated}`
  return { id, code: codes.unsupportedVersion, message, data }
}
