/**
 * Headers that repeat parts of a message for intermediaries (2026-07-28, request metadata). The gateway
 * refuses requests whose headers and body disagree before it judges anything else.
 */
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'
import { member, textOf } from '../json/node.ts'
import type { McpNotification, McpRequest } from '../message.ts'
import { methodOf, type ProtocolEra } from '../methods.ts'

const begin = '=?base64?'
const end = '?='

const isEncoded = (value: string): boolean =>
  value.length >= begin.length + end.length && value.startsWith(begin) && value.endsWith(end)

/** Writes a name as a header value. Texts that a header cannot hold as they are become base64. */
export function encodeName(name: string): string {
  const isPlain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(name) && !isEncoded(name)
  return isPlain ? name : `${begin}${Buffer.from(name).toString('base64')}${end}`
}

/** Reverses `encodeName`. Returns undefined if the value is not valid. */
export function decodeName(value: string): string | undefined {
  if (!isEncoded(value)) return /^[\t\x20-\x7e]*$/.test(value) ? value : undefined
  const encoded = value.slice(begin.length, -end.length)
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Returns the text that `Mcp-Name` must repeat; undefined if the message names nothing. */
export function nameInBody(
  { text, method, params }: McpRequest | McpNotification,
  era: ProtocolEra,
): string | undefined {
  const known = methodOf(method, era)
  if (known.kind === 'task') return textOf(text, member(params, 'taskId'))
  const node =
    known.kind === 'item'
      ? member(params, known.key)
      : (member(params, 'name') ?? member(params, 'uri'))
  return textOf(text, node)
}

/** Whether a modern request with this method must have an `Mcp-Name` header. */
function needsName(method: string): boolean {
  const { kind } = methodOf(method, 'modern')
  return kind === 'item' || kind === 'task'
}

/** Returns why the headers of a modern message are refused; undefined if they agree with the body. */
export function headerProblem(
  headers: HeaderFields,
  message: McpRequest | McpNotification,
  version: string,
): string | undefined {
  const { kind, method } = message
  const name = nameInBody(message, 'modern')
  // The revision does not define headers of notifications, so they may be missing.
  const isRequest = kind === 'request'
  return (
    differing(headers, 'MCP-Protocol-Version', version, isRequest) ??
    differing(headers, 'Mcp-Method', method, isRequest) ??
    differing(headers, 'Mcp-Name', name, isRequest && name !== undefined && needsName(method))
  )
}

/** Returns why the headers of a legacy message are refused. They may be missing, but must not differ. */
export function legacyHeaderProblem(
  headers: HeaderFields,
  message: McpRequest | McpNotification,
): string | undefined {
  return (
    differing(headers, 'Mcp-Method', message.method, false) ??
    differing(headers, 'Mcp-Name', nameInBody(message, 'legacy'), false)
  )
}

function differing(
  headers: HeaderFields,
  name: string,
  inBody: string | undefined,
  isNeeded: boolean,
): string | undefined {
  const value = headers.lines(name)
  if (value === undefined) return isNeeded ? `the header ${name} is missing` : undefined
  if (typeof value === 'object') return `there is more than one header ${name}`
  const stated = name === 'Mcp-Name' ? decodeName(value) : value
  if (stated === undefined) return `the header ${name} has invalid characters or invalid base64`
  return stated === inBody ? undefined : `the header ${name} differs from the body`
}
