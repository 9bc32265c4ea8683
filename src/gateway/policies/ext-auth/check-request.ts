import { isUtf8 } from 'node:buffer'
import { create, type JsonObject } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { type CheckRequest, CheckRequestSchema } from '../../../../proto/gen/called/ext_authz_pb.ts'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import {
  type Exchange,
  type Peer,
  pathAndQuery,
  type RequestHead,
} from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../ground/exchange/learned.ts'
import { partialBodyName, type SentBody } from './authorizer.ts'
import type { GrpcAuthorization } from './config.ts'
import { evaluateAll, type Named } from './expressions.ts'

/** Metadata key of Envoy's JWT filter, under which services expect claims. */
const jwtFilter = 'envoy.filters.http.jwt_authn'

/** Provides time and random values, so that this file stays free of side effects. */
export interface RequestStamps {
  /** Converts the start of an exchange to milliseconds since 1970. */
  readonly epochMs: (startedAt: number) => number
  readonly uniqueId: () => string
}

/** Builds the CheckRequest that describes a request to an authorization service. */
export function checkRequest(
  exchange: Exchange,
  { contextExtensions, allowedRequestHeaders, packAsBytes }: GrpcAuthorization,
  metadata: Named | undefined,
  body: SentBody | undefined,
  { epochMs, uniqueId }: RequestStamps,
): CheckRequest {
  const { request, source, local, peerCertificate, startedAt } = exchange
  const principal = peerCertificate?.spiffeId ?? peerCertificate?.subject ?? ''
  return create(CheckRequestSchema, {
    attributes: {
      source: { ...peer(source), principal },
      destination: peer(local),
      request: {
        time: timestampFromMs(epochMs(startedAt)),
        http: {
          id: traceIdOf(request) ?? uniqueId(),
          method: request.method,
          headers: headersOf(request, allowedRequestHeaders, body),
          path: pathAndQuery(request),
          host: withoutRootDot(request.authority),
          scheme: request.scheme,
          size: BigInt(sizeOf(exchange, body)),
          protocol: request.version === '2' ? 'HTTP/2' : `HTTP/${request.version}`,
          ...bodyFields(body?.bytes, packAsBytes === true),
        },
      },
      contextExtensions: { ...contextExtensions },
      metadataContext: { filterMetadata: metadataOf(exchange, metadata) },
    },
  })
}

const peer = ({ address, port }: Peer) => ({
  address: { socketAddress: { address, portValue: port } },
})

/** Size of the whole body in bytes; -1 if unknown. */
function sizeOf({ requestBody }: Exchange, body: SentBody | undefined): number {
  if (body !== undefined && !body.isPartial) return body.bytes.length
  return requestBody.length ?? -1
}

/** Sends the body as text if it is UTF-8, else as bytes, since protobuf strings must be UTF-8. */
function bodyFields(body: Uint8Array | undefined, asBytes: boolean) {
  if (body === undefined) return {}
  return !asBytes && isUtf8(body) ? { body: Buffer.from(body).toString() } : { rawBody: body }
}

/** The trace id of the request (W3C Trace Context 3.2). */
function traceIdOf({ headers }: RequestHead): string | undefined {
  const found = /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(headers.get('traceparent') ?? '')
  return found?.[1]
}

/** Headers by lower-case name. Values of the same name are joined (RFC 9110 5.3, RFC 6265 for cookies). */
function headersOf(
  request: RequestHead,
  allowed: readonly string[] | undefined,
  body: SentBody | undefined,
): Record<string, string> {
  const found: Record<string, string> = Object.create(null)
  found[':method'] = request.method
  found[':scheme'] = request.scheme
  found[':authority'] = withoutRootDot(request.authority)
  found[':path'] = pathAndQuery(request)
  for (const [name, value] of request.headers.entries()) {
    const key = name.toLowerCase()
    if (allowed !== undefined && !allowed.includes(key)) continue
    const text = Buffer.from(value, 'latin1').toString()
    const before = found[key]
    found[key] = before === undefined ? text : `${before}${key === 'cookie' ? '; ' : ', '}${text}`
  }
  // Only the gateway may say whether the body is whole.
  delete found[partialBodyName]
  if (body !== undefined) found[partialBodyName] = `${body.isPartial}`
  return found
}

/** Claims of a verified token under the metadata key of Envoy's JWT filter; undefined without a token. */
export function claimsMetadata({ learned }: Exchange): Record<string, JsonObject> | undefined {
  const { jwt } = learned
  return jwt === undefined ? undefined : { [jwtFilter]: toObject({ jwt_payload: jwt }) }
}

function metadataOf(exchange: Exchange, metadata: Named | undefined): Record<string, JsonObject> {
  if (metadata === undefined) return claimsMetadata(exchange) ?? {}
  const found: Record<string, JsonObject> = {}
  for (const [name, value] of Object.entries(evaluateAll(metadata, exchange))) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    // Envoy metadata must be an object, so any other value is put into a member named `value`.
    found[name] = toObject(isObject ? (value as LearnedRecord) : { value })
  }
  return found
}

/** Converts bigints to numbers, since numbers in a protobuf Struct are doubles. */
export function toObject(record: LearnedRecord): JsonObject {
  const text = JSON.stringify(record, (_, value) =>
    typeof value === 'bigint' ? Number(value) : value,
  )
  return JSON.parse(text) as JsonObject
}
