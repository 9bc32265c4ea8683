/** Reads requests from an access log of the gateway in JSON, one object per line. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { isObject, type JsonObject } from '../../../ground/base/json-object.ts'
import type { ReadRequest } from './har.ts'

/** Maximum length of a line. The gateway writes no longer lines, because it limits request heads. */
const maxLine = 1024 * 1024

const headersProblem = 'an access log has no header fields'

/** Yields a request or a problem for each line. Lines that are not about a request are skipped. */
export async function* readAccessLog(file: string): AsyncGenerator<ReadRequest> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity })
  let number = 0
  for await (const line of lines) {
    number++
    if (line.trim() === '') continue
    const read = readLine(line)
    if (typeof read === 'string') yield { problem: `${file}: line ${number}: ${read}` }
    else if (read !== undefined) yield { request: read }
  }
}

/** Returns the request of a line, a text if the line cannot be read, or undefined if it is not about a request. */
function readLine(
  line: string,
): Extract<ReadRequest, { request: unknown }>['request'] | string | undefined {
  if (line.length > maxLine) return `the line is longer than ${maxLine} characters`
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  if (!isObject(fields)) return 'expected an object'
  const method = textAt(fields, 'http.method')
  const target = textAt(fields, 'http.path')
  if (method === undefined || target === undefined) return undefined
  return requestOf(fields, method, target)
}

function requestOf(fields: JsonObject, method: string, target: string) {
  const [path = '/', ...query] = target.split('?')
  const [, address, port] = /^\[?(.*?)\]?:(\d+)$/.exec(textAt(fields, 'src.addr') ?? '') ?? []
  const timeMs = Date.parse(textAt(fields, 'time') ?? '')
  return {
    method,
    host: textAt(fields, 'http.host') ?? '',
    path,
    ...(query.length > 0 && { query: query.join('?') }),
    scheme: textAt(fields, 'protocol') === 'https' ? ('https' as const) : ('http' as const),
    ...(address !== undefined && { source: { address, port: Number(port) } }),
    protocol: textAt(fields, 'http.version') ?? 'HTTP/1.1',
    headers: [],
    headersProblem,
    gateway: textAt(fields, 'gateway'),
    listener: textAt(fields, 'listener'),
    ...(Number.isNaN(timeMs) ? {} : { timeMs }),
  }
}

function textAt(fields: JsonObject, name: string): string | undefined {
  const value = fields[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
