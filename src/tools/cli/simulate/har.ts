/** Reads the requests of a HAR file (version 1.2). */
import { existsSync } from 'node:fs'
import { isObject, type JsonObject } from '../../../ground/base/json-object.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { UsageError } from '../shared/output.ts'
import { type GivenRequest, requestAt } from './given-request.ts'

/** Larger files are refused, because the whole file is in memory. */
const maxBytes = 256 * 1024 * 1024

/** A request, or why an entry has none. */
export type ReadRequest = { readonly request: GivenRequest } | { readonly problem: string }

/** @throws UsageError if the file is not a HAR file */
export function* readHar(file: string): Generator<ReadRequest> {
  const entries = entriesOf(file)
  for (const [at, entry] of entries.entries()) {
    try {
      yield { request: requestOf(entry) }
    } catch (error) {
      yield { problem: `${file}: entry ${at}: ${messageOf(error)}` }
    }
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

function entriesOf(file: string): readonly unknown[] {
  if (!existsSync(file)) throw new UsageError(`${file} does not exist`)
  let parsed: unknown
  try {
    parsed = JSON.parse(readWholeFile(file, maxBytes).replace(/^\ufeff/, ''))
  } catch (error) {
    throw new UsageError(`${file}: ${messageOf(error)}`)
  }
  const entries = isObject(parsed) && isObject(parsed.log) ? parsed.log.entries : undefined
  if (!Array.isArray(entries)) throw new UsageError(`${file}: expected a list at log.entries`)
  return entries
}

function requestOf(entry: unknown): GivenRequest {
  if (!isObject(entry) || !isObject(entry.request)) throw new Error('expected an object at request')
  const { request, startedDateTime } = entry
  const timeMs = typeof startedDateTime === 'string' ? Date.parse(startedDateTime) : Number.NaN
  const body = bodyOf(request)
  return {
    ...requestAt(textAt(request, 'url'), 'request.url'),
    method: textAt(request, 'method'),
    protocol: protocolOf(request.httpVersion),
    ...headersOf(request),
    ...(Number.isNaN(timeMs) ? {} : { timeMs }),
    ...(body !== undefined && { body }),
  }
}

function textAt(object: JsonObject, field: string): string {
  const value = object[field]
  if (typeof value !== 'string' || value === '')
    throw new Error(`expected a text at request.${field}`)
  return value
}

/** Browsers write `http/2.0`, `h2` or `HTTP/1.1`. HTTP/3 is like HTTP/2 for policies. */
const protocolOf = (version: unknown): string =>
  /^(?:http\/|h)[23]/i.test(String(version)) ? 'HTTP/2' : 'HTTP/1.1'

function headersOf({ headers }: JsonObject): Pick<GivenRequest, 'headers'> & { host?: string } {
  if (!Array.isArray(headers)) throw new Error('expected a list at request.headers')
  const fields = headers.map((field: unknown, at) => {
    if (isObject(field) && typeof field.name === 'string' && typeof field.value === 'string') {
      return { name: field.name, value: field.value }
    }
    throw new Error(`expected a name and a value at request.headers[${at}]`)
  })
  const host = fields.find(({ name }) => /^(?:host|:authority)$/i.test(name))?.value
  // Browsers write the pseudo-headers of HTTP/2 among the fields.
  const isField = ({ name }: { name: string }) => !name.startsWith(':') && !/^host$/i.test(name)
  return { headers: fields.filter(isField), ...(host !== undefined && { host }) }
}

/** The body; undefined if it is not in the file. */
function bodyOf({ postData, bodySize }: JsonObject): Uint8Array | undefined {
  if (isObject(postData)) {
    return typeof postData.text === 'string' ? Buffer.from(postData.text) : undefined
  }
  return typeof bodySize === 'number' && bodySize > 0 ? undefined : Buffer.alloc(0)
}
