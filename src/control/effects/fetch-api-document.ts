/** Fetches an OpenAPI document that a target of a backend serves. */
import { fieldsOf, OpenApiDocument } from '../../gateway/backends/mcp/openapi/document.ts'
import { destinationFilter } from '../../ground/base/destination-rules.ts'
import { isObject } from '../../ground/base/json-object.ts'
import { parseDocument } from '../desired/derive/documents.ts'
import { callBackend, type SecretLookup } from './call-backend.ts'
import type { CalledAddress } from './called-address.ts'

interface FetchedApiDocument {
  readonly document: Readonly<Record<string, unknown>>
  readonly etag: string | undefined
}

/** Maximum bytes of a response. */
const maxBytes = 2_097_152
/** Maximum bytes of a document as JSON, which must fit into an event. */
const maxJson = 1_000_000
/** Maximum depth of a document. */
const maxDepth = 128
const timeoutMs = 10_000

/** Operators configure targets, so loopback and private addresses are allowed, as for calls of the target. */
const mayCall = destinationFilter({ allow: [], refuse: [], loopback: true })

/**
 * Resolves with the document; undefined if it is the one with the `etag`. References in it are not followed. If it
 * rejects, the text of the Error is for operators.
 */
export async function fetchApiDocument(
  address: CalledAddress,
  path: string,
  etag: string | undefined,
  secret: SecretLookup,
  stop: AbortSignal,
): Promise<FetchedApiDocument | undefined> {
  const headers = {
    accept: 'application/json, application/yaml;q=0.9, */*;q=0.5',
    ...(etag !== undefined && { 'if-none-match': etag }),
  }
  const request = { method: 'GET', path, headers, timeoutMs, maxBytes, mayCall } as const
  const { status, text, etag: next } = await callBackend(address, request, secret, stop)
  if (status === 304 && etag !== undefined) return undefined
  if (status !== 200) throw new Error(`the server answers ${status}`)
  return { document: checkedDocument(text), etag: next }
}

function checkedDocument(text: string): Readonly<Record<string, unknown>> {
  const read = parseDocument(text)
  if (typeof read === 'string') throw new Error(`the response is not a document: ${read}`)
  const { value } = read
  if (!isObject(value)) throw new Error('the response is not an OpenAPI document')
  if (isDeeper(value, maxDepth))
    throw new Error(`the document is nested more than ${maxDepth} levels deep`)
  const json = JSON.stringify(value)
  if (Buffer.byteLength(json) > maxJson) {
    throw new Error(`the document has more than ${maxJson} bytes as JSON`)
  }
  new OpenApiDocument(value)
  if (Object.keys(fieldsOf(value.paths)).length === 0) {
    throw new Error('the document has no operations')
  }
  // YAML may have values that JSON cannot hold, such as dates.
  return JSON.parse(json)
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depth === 0) return true
  return Object.values(value).some((one) => isDeeper(one, depth - 1))
}
