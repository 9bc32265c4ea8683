/** Checks the head of a request (streamable HTTP). */
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { splitAuthority } from '../../../proxy/upstream/authority.ts'
import { codes } from '../answers.ts'
import { knownVersions } from '../initialize.ts'
import { legacySession } from './legacy-client.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { json, jsonRefusal } from './refusals.ts'

const refuse = (status: number, message: string): RespondVerdict =>
  jsonRefusal(status, undefined, codes.invalidRequest, message)

/** Returns the response that refuses an invalid request; undefined if the request is valid. */
export function checkRequest(exchange: McpExchange): RespondVerdict | undefined {
  const { request } = exchange.context.exchange
  const { headers, method } = request
  const { isStateless } = exchange.backend
  const allowed = isStateless ? 'POST' : 'GET, POST, DELETE'
  if (!allowed.split(', ').includes(method)) {
    const refused = refuse(405, `method not allowed; must be ${allowed}`)
    return { ...refused, headers: [json, ['allow', allowed]] }
  }
  if (isForeignOrigin(exchange)) return refuse(403, 'requests of this origin are not allowed here')
  const accept = headers.getAll('accept').join(',').toLowerCase()
  if (method === 'GET' && !accepts(accept, 'text/event-stream')) {
    return refuse(406, 'Not Acceptable: the client must accept text/event-stream')
  }
  if (method === 'POST') {
    const isLegacy = legacySession(exchange) !== undefined
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
  return checkVersion(headers.get('mcp-protocol-version'))
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

function checkVersion(version: string | undefined): RespondVerdict | undefined {
  if (version === undefined || knownVersions.includes(version)) return undefined
  const data = { supported: knownVersions, requested: version }
  const message = `Bad Request: unsupported protocol version ${version} (supported versions: ${knownVersions.join(', ')})`
  const detail = 'unsupported protocol version'
  return jsonRefusal(400, undefined, codes.invalidRequest, message, { data, detail })
}

const loopback = /^(127(\.\d+){3}|::1|::ffff:127(\.\d+){3})$/
const localNames = /^(localhost|127(\.\d+){3}|::1)$/i

/**
 * Does the request come from a web page of another origin, by DNS rebinding? This is checked only for
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
