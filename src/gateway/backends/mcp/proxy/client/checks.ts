/** Checks the head of a request (streamable HTTP). */
import type { HeaderFields, RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { splitAuthority } from '../../../../proxy/upstream/authority.ts'
import { legacyHeaderProblem } from '../../eras/headers.ts'
import {
  assumedVersion,
  hasBatches,
  legacyVersions,
  modernVersions,
  supportedVersions,
} from '../../eras/versions.ts'
import { codes } from '../../json-rpc.ts'
import type { McpMessage } from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { jsonRefusal } from '../exchange/refusals.ts'
import { json } from '../target/target-failure.ts'
import { olderSessionId } from './older-transport.ts'

const refuse = (status: number, message: string): RespondVerdict =>
  jsonRefusal(status, undefined, codes.invalidRequest, message)

const statelessMethods = ['POST']
const allMethods = ['GET', 'POST', 'DELETE']

/** Returns the response that refuses an invalid request; undefined if the request is valid. */
export function checkRequest(exchange: McpExchange): RespondVerdict | undefined {
  const { headers, method } = exchange.client.request
  const allowed = exchange.backend.isStateless ? statelessMethods : allMethods
  if (!allowed.includes(method)) return wrongMethod(allowed.join(', '))
  if (isForeignOrigin(exchange)) return refuse(403, 'requests of this origin are not allowed here')
  const accepted = headers.lines('accept') ?? ''
  const accept = (typeof accepted === 'string' ? accepted : accepted.join(',')).toLowerCase()
  if (method === 'GET' && !accepts(accept, 'text/event-stream')) {
    return refuse(406, 'Not Acceptable: the client must accept text/event-stream')
  }
  if (method === 'POST') {
    const isLegacy = olderSessionId(exchange) !== undefined
    if (!isLegacy && !acceptsBoth(accept)) {
      return refuse(
        406,
        'Not Acceptable: the client must accept application/json and text/event-stream',
      )
    }
    const type = headers.get('content-type') ?? ''
    if (!/^application\/json\s*(;|$)/i.test(type)) {
      return refuse(415, 'Unsupported Media Type: content-type must be application/json')
    }
  }
  return method === 'POST' ? undefined : checkVersion(headers)
}

/** Compares with the value that every SDK sends first, which is faster than parsing. */
const acceptsBoth = (accept: string): boolean =>
  accept === 'application/json, text/event-stream' ||
  (accepts(accept, 'text/event-stream') && accepts(accept, 'application/json'))

/** Ignores weights: `q=0` is too rare to matter. */
function accepts(accept: string, type: string): boolean {
  const [major = ''] = type.split('/')
  return accept
    .split(',')
    .map((range) => range.split(';')[0]?.trim() ?? '')
    .some((range) => range === type || range === '*/*' || range === `${major}/*`)
}

/** Judges the version of a request without a body. The modern era has only POST. */
function checkVersion(headers: HeaderFields): RespondVerdict | undefined {
  const [version, ...more] = headers.getAll('mcp-protocol-version')
  if (version === undefined) return undefined
  if (more.length === 0 && legacyVersions.includes(version)) return undefined
  if (more.length === 0 && modernVersions.includes(version)) return wrongMethod('POST')
  const data = { supported: supportedVersions, requested: version }
  const message = `Unsupported protocol version: ${version}`
  const detail = 'unsupported protocol version'
  return jsonRefusal(400, undefined, codes.unsupportedVersion, message, { data, detail })
}

function wrongMethod(allowed: string): RespondVerdict {
  const refused = refuse(405, `method not allowed; must be ${allowed}`)
  return { ...refused, headers: [json, ['allow', allowed]] }
}

/** Maximum number of messages in one batch. */
export const maxBatchSize = 100

export const noBatches = (): RespondVerdict => refuse(400, 'this version of MCP has no batches')

/** Checks messages of the legacy era, and the headers that repeat parts of a message for intermediaries. */
export function checkLegacyMessages(
  headers: HeaderFields,
  messages: readonly McpMessage[],
  isBatch: boolean,
): RespondVerdict | undefined {
  const stated = headers.get('mcp-protocol-version') ?? assumedVersion
  if (isBatch && !hasBatches(stated)) return noBatches()
  if (messages.length > maxBatchSize) return refuse(400, 'the batch is too long')
  if (isBatch && messages.some((one) => 'method' in one && one.method === 'initialize')) {
    return refuse(400, 'initialize comes alone')
  }
  for (const message of messages) {
    const problem = legacyProblem(headers, message)
    if (problem === undefined) continue
    const id = message.kind === 'request' ? message.id : undefined
    return jsonRefusal(400, id, codes.headerMismatch, `Header mismatch: ${problem}`)
  }
  return undefined
}

function legacyProblem(headers: HeaderFields, message: McpMessage): string | undefined {
  if (message.kind !== 'response') return legacyHeaderProblem(headers, message)
  // Intermediaries would take a response with these headers for a request.
  const isMarked = headers.has('mcp-method') || headers.has('mcp-name')
  return isMarked ? 'a response must not have the headers Mcp-Method and Mcp-Name' : undefined
}

const loopback = /^(127(\.\d+){3}|::1|::ffff:127(\.\d+){3})$/
const localNames = /^(localhost|127(\.\d+){3}|::1)$/i

/**
 * Whether the request comes from a web page of another origin, by DNS rebinding. This is checked only for
 * loopback addresses, where nothing else keeps web pages away. It is not checked if the route has hostnames,
 * or if a CORS policy allows the origin.
 */
function isForeignOrigin({ context, placement }: McpExchange): boolean {
  const { request, local, extensions } = context.exchange
  const origin = request.headers.get('origin')
  if (origin === undefined || !loopback.test(local.address)) return false
  // A CORS policy allows the origin.
  for (const [name, value] of extensions) {
    if (name.startsWith('cors.') && value === origin) return false
  }
  const { key } = placement.listener.resource
  const attached = placement.rule.resource.attachments.find(({ listener }) => listener === key)
  if (attached !== undefined && !attached.hostnames.includes('')) return false
  const host = /^[a-z][a-z0-9+.-]*:\/\/([^/]+)$/i.exec(origin)?.[1]
  const name = host === undefined ? undefined : splitAuthority(host)?.host
  return name === undefined || !localNames.test(name)
}
