/** Reads the request of a curl command line. */
import { parseArgs } from 'node:util'
import type { SimulatedHeader } from '../../../past/simulate/index.ts'
import { UsageError } from '../shared/output.ts'
import type { GivenRequest } from './given-request.ts'
import { requestAt } from './given-request.ts'
import { shellWords } from './shell-words.ts'

const list = { type: 'string', multiple: true } as const
const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const

/** Options that determine the request. */
const requestOptions = {
  request: { ...text, short: 'X' },
  header: { ...list, short: 'H' },
  data: { ...list, short: 'd' },
  'data-ascii': list,
  'data-raw': list,
  'data-binary': list,
  'data-urlencode': list,
  json: list,
  user: { ...text, short: 'u' },
  'user-agent': { ...text, short: 'A' },
  cookie: { ...text, short: 'b' },
  referer: { ...text, short: 'e' },
  url: text,
  head: { ...flag, short: 'I' },
  get: { ...flag, short: 'G' },
  'http1.0': { ...flag, short: '0' },
  'http1.1': flag,
  http2: flag,
} as const

/** Options that do not change the request. */
const otherOptions = {
  insecure: { ...flag, short: 'k' },
  silent: { ...flag, short: 's' },
  'show-error': { ...flag, short: 'S' },
  verbose: { ...flag, short: 'v' },
  include: { ...flag, short: 'i' },
  location: { ...flag, short: 'L' },
  fail: { ...flag, short: 'f' },
  globoff: { ...flag, short: 'g' },
  'no-buffer': { ...flag, short: 'N' },
  'progress-bar': { ...flag, short: '#' },
  ipv4: { ...flag, short: '4' },
  ipv6: { ...flag, short: '6' },
  compressed: flag,
  output: { ...text, short: 'o' },
  'write-out': { ...text, short: 'w' },
  'max-time': { ...text, short: 'm' },
  'connect-timeout': text,
  cacert: text,
  resolve: list,
  'connect-to': list,
} as const

const options = { ...requestOptions, ...otherOptions }

type Values = ReturnType<typeof parse>['values']

/** @throws UsageError */
export function readCurl(command: string): GivenRequest {
  const { values, positionals } = parse(command)
  const [first, ...urls] = positionals
  if (first !== 'curl') throw new UsageError('--curl: expected a command that begins with curl')
  const [url, ...more] = values.url === undefined ? urls : [values.url, ...urls]
  if (url === undefined) throw new UsageError('--curl: the command has no URL')
  if (more.length > 0) throw new UsageError('--curl: the command has more than one URL')
  return requestOf(values, url)
}

function parse(command: string) {
  try {
    return parseArgs({ args: shellWords(command), options, allowPositionals: true })
  } catch (error) {
    throw new UsageError(`--curl: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function requestOf(values: Values, url: string): GivenRequest {
  const data = dataOf(values)
  const isInQuery = values.get === true && data !== undefined
  const request = requestAt(isInQuery ? withQuery(url, data) : url, '--curl')
  const body = isInQuery ? undefined : data
  const { host, headers } = headersOf(values, body !== undefined)
  const byDefault = values.head === true ? 'HEAD' : body === undefined ? 'GET' : 'POST'
  return {
    ...request,
    ...(host !== undefined && { host }),
    method: values.request ?? byDefault,
    headers,
    body: Buffer.from(body ?? ''),
    ...(values['http1.0'] === true && { protocol: 'HTTP/1.0' }),
    ...(values.http2 === true && { protocol: 'HTTP/2' }),
  }
}

const withQuery = (url: string, data: string) => `${url}${url.includes('?') ? '&' : '?'}${data}`

/** Returns the body; undefined if there is none. @throws UsageError if it is in a file */
function dataOf(values: Values): string | undefined {
  const { data = [], json = [] } = values
  const plain = [...data, ...(values['data-ascii'] ?? []), ...(values['data-binary'] ?? [])]
  for (const one of [...plain, ...json]) {
    if (!one.startsWith('@')) continue
    throw new UsageError(`--curl: the data ${one} is in a file; give the data itself`)
  }
  const encoded = (values['data-urlencode'] ?? []).map(urlEncoded)
  const all = [...plain, ...(values['data-raw'] ?? []), ...encoded]
  if (json.length > 0) return json.join('')
  return all.length === 0 ? undefined : all.join('&')
}

/** Encodes the content of `content`, `=content` or `name=content`. */
function urlEncoded(text: string): string {
  const [, name = '', content = text] = /^([^=@]*)=([\s\S]*)$/.exec(text) ?? []
  const prefix = name === '' ? '' : `${name}=`
  return prefix + encodeURIComponent(content)
}

/** Returns the fields that curl sends by default, with those of the command in their place. */
function headersOf(
  values: Values,
  hasBody: boolean,
): { host?: string; headers: readonly SimulatedHeader[] } {
  const fields = new Map<string, SimulatedHeader[]>()
  const put = (name: string, value: string) => fields.set(name.toLowerCase(), [{ name, value }])
  // The version of curl is not known.
  fields.set('user-agent', [{ name: 'User-Agent' }])
  put('Accept', '*/*')
  if (values['user-agent'] !== undefined) put('User-Agent', values['user-agent'])
  if (values.cookie !== undefined) put('Cookie', values.cookie)
  if (values.referer !== undefined) put('Referer', values.referer)
  if (hasBody) put('Content-Type', 'application/x-www-form-urlencoded')
  if (values.json !== undefined) put('Content-Type', 'application/json')
  if (values.json !== undefined) put('Accept', 'application/json')
  if (values.user !== undefined) {
    put('Authorization', `Basic ${Buffer.from(values.user).toString('base64')}`)
  }
  addGiven(fields, values.header ?? [])
  const host = fields.get('host')?.[0]?.value
  fields.delete('host')
  return { ...(host !== undefined && { host }), headers: [...fields.values()].flat() }
}

/** Adds `-H` fields: `Name: value` sets a field, `Name:` removes it, and `Name;` sets an empty value. */
function addGiven(fields: Map<string, SimulatedHeader[]>, given: readonly string[]): void {
  const replaced = new Set<string>()
  for (const field of given) {
    const [, name = '', separator, value = ''] =
      /^([^:;\s]+)\s*([:;])\s*([\s\S]*?)\s*$/.exec(field) ?? []
    if (separator === undefined)
      throw new UsageError(`--curl: the header ${field} is not NAME: VALUE`)
    const key = name.toLowerCase()
    if (!replaced.has(key)) fields.delete(key)
    replaced.add(key)
    if (value === '' && separator === ':') continue
    fields.set(key, [...(fields.get(key) ?? []), { name, value }])
  }
}
