/** The fields of each variable. They are read from the exchange only when an expression needs them. */

import {
  CelError,
  type CelRecord,
  type CelResult,
  CelTimestamp,
  type HeadersView,
} from '../../engines/cel/index.ts'
import { withoutRootDot } from '../../ground/base/root-dot.ts'
import {
  type Body,
  type Exchange,
  type HeaderFields,
  pathAndQuery,
} from '../../ground/exchange/exchange.ts'
import { codingOf, decodedBytes } from './decoded.ts'
import { proxyHeaderRecord } from './proxy-header.ts'

export type Fields = Readonly<Record<string, (exchange: Exchange) => CelResult | undefined>>

/** Fields of `request`, with the changes that earlier policies made. */
export const requestFields = (headers: HeadersView): Fields => ({
  method: ({ request }) => request.method,
  uri: ({ request }) =>
    `${request.scheme}://${withoutRootDot(request.authority)}${pathAndQuery(request)}`,
  host: ({ request }) => withoutRootDot(request.authority),
  scheme: ({ request }) => request.scheme,
  path: ({ request }) => request.path,
  pathAndQuery: ({ request }) => pathAndQuery(request),
  version: ({ request }) => `HTTP/${request.version}`,
  headers: () => headers,
  body: ({ requestBody, request, bufferLimit }) =>
    bodyField(requestBody, request.headers, bufferLimit),
  bodyPrefix: ({ requestBody, request, bufferLimit }) =>
    bodyPrefixField(requestBody, request.headers, bufferLimit),
  startTime: ({ startedAt }) => timeAt(startedAt),
  endTime: ({ isOver }) => (isOver ? timeAt(performance.now()) : undefined),
})

/** Fields of `response`, from the upstream or the gateway, with the changes made so far. */
export const responseFields = (headers: HeadersView): Fields => ({
  code: ({ response }) => response && codes[response.status],
  grpcStatus,
  headers: ({ response }) => response && headers,
  body: ({ response, responseBody, bufferLimit }) =>
    response && bodyField(responseBody, response.headers, bufferLimit),
  bodyPrefix: ({ response, responseBody, bufferLimit }) =>
    response && bodyPrefixField(responseBody, response.headers, bufferLimit),
})

/** Fields of `source`, the client. Those of its certificate are missing unless it has a trusted one. */
export const sourceFields: Fields = {
  address: ({ source }) => source.address,
  port: ({ source }) => BigInt(source.port),
  rawAddress: ({ rawSource }) => rawSource.address,
  rawPort: ({ rawSource }) => BigInt(rawSource.port),
  proxyProtocol: ({ rawSource }) =>
    rawSource.proxyHeader && proxyHeaderRecord(rawSource.proxyHeader),
  connectHeaders: ({ rawSource }) =>
    rawSource.connectHeaders && Object.fromEntries(rawSource.connectHeaders),
  identity: ({ peerCertificate }) => workloadOf(peerCertificate?.spiffeId),
  subjectAltNames: ({ peerCertificate }) => peerCertificate?.subjectAltNames,
  issuer: ({ peerCertificate }) => peerCertificate?.issuer,
  subject: ({ peerCertificate }) => peerCertificate?.subject,
  subjectCn: ({ peerCertificate }) => peerCertificate?.subjectCn,
  spiffeId: ({ peerCertificate }) => peerCertificate?.spiffeId,
  certificate: ({ peerCertificate }) => peerCertificate?.pem,
}

/** Fields of `destination`: the address of the gateway to which the client connected. */
export const destinationFields: Fields = {
  address: ({ local }) => local.address,
  port: ({ local }) => BigInt(local.port),
}

/** Fields of `backend`; missing until a backend is chosen. */
export const backendFields: Fields = {
  name: ({ backend }) => backend?.name,
  type: ({ backend }) => backend?.type,
  protocol: ({ backend }) => backend?.protocol,
}

/** Fields of `proxy`: the parts of the configuration that the request has matched so far. */
export const proxyFields: Fields = {
  gateway: ({ place }) => objectName(place.gateway),
  listener: ({ place }) => (place.listener === '' ? undefined : { name: place.listener }),
  route: ({ place: { route, rule } }) =>
    route === undefined ? undefined : { ...objectName(route), rule },
}

const timeAt = (time: number) => CelTimestamp.fromMilliseconds(performance.timeOrigin + time)

const notRead = new CelError('limit', 'the body was not read into memory')
const tooLarge = new CelError('limit', 'the body is larger than the limit for bodies in memory')

const prefixIsEncoded = new CelError('limit', 'the body is compressed, and larger than the limit')

/** Returns the whole body without its content coding, or an error of kind `limit` if it is not in memory. */
function bodyField(body: Body | undefined, headers: HeaderFields, limit: number): CelResult {
  const known = body?.known
  if (known === undefined) return notRead
  if (!known.complete) return tooLarge
  const coding = codingOf(headers)
  return coding === undefined ? known.bytes : decodedBytes(known.bytes, coding, limit)
}

/** Returns the part of a body that is in memory, or an error of kind `limit` if that cannot be decoded. */
function bodyPrefixField(body: Body | undefined, headers: HeaderFields, limit: number): CelResult {
  const known = body?.known
  if (known === undefined || known.complete) return bodyField(body, headers, limit)
  return codingOf(headers) === undefined ? known.prefix : prefixIsEncoded
}

/** The int of every status, created once so that reading a status allocates nothing. */
const codes = Array.from({ length: 600 }, (_, code) => BigInt(code))

/**
 * Returns the status of a gRPC response, which is in its trailers, once its body is over, or in its head if
 * it has no body. Undefined for all other responses.
 */
export function grpcStatus({ response, responseBody }: Exchange): bigint | undefined {
  const trailer = /(?:^|\n)grpc-status:[\t ]*([0-9]{1,3})[\t ]*(?:\r?\n|$)/i
  const text =
    trailer.exec(responseBody?.trailers ?? '')?.[1] ?? response?.headers.get('grpc-status')
  return text !== undefined && /^[0-9]{1,3}$/.test(text) ? BigInt(text) : undefined
}

/** Reads `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`, the form that meshes use. */
function workloadOf(spiffeId = ''): CelRecord | undefined {
  const found = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId)
  if (found === null) return undefined
  const [, trustDomain, namespace, serviceAccount] = found
  return { trustDomain, namespace, serviceAccount }
}

/** Splits `namespace/name`. */
function objectName(text: string): CelRecord | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return undefined
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
