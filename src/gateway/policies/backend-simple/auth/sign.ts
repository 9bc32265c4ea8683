import { scopeOfHost } from '../../../../engines/auth/aws/scope.ts'
import {
  type AwsCredentials,
  payloadHash,
  signRequest,
  unsignedPayload,
} from '../../../../engines/auth/aws/signature.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import { type Exchange, next, type Verdict } from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions, type SigningScope } from '../../../../ground/exchange/forwarding.ts'

/** Headers that the signature adds. Values that a client sent must not be signed. */
const signedByUs = ['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256']

export interface SigningContext {
  /** AWS region for hosts whose names contain none. */
  readonly region: string | undefined
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number
  /** Service and region that the user has configured. */
  readonly own?: { readonly service?: string | undefined; readonly region?: string | undefined }
}

/** Signs a request for AWS. Returns a promise if the body must be read first. */
export function signExchange(
  exchange: Exchange,
  credentials: AwsCredentials,
  { region, clock, own }: SigningContext,
): Verdict | Promise<Verdict> {
  const { request } = exchange
  const given = exchange.extensions.get(forwardingExtensions.signingScope) as
    | SigningScope
    | undefined
  const found = given ?? scopeOfHost(request.authority, region)
  const scope = {
    service: own?.service ?? found.service,
    region: own?.region ?? found.region,
  }
  for (const name of signedByUs) request.headers.remove(name)
  const finish = (hash: string): Verdict => {
    const { method, authority, path, query } = request
    const headers = [...request.headers.entries()]
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => name === 'content-type' || name.startsWith('x-amz-'))
    const signable = { method, host: authority, path, query, headers, payloadHash: hash }
    for (const [name, value] of signRequest(signable, scope, credentials, clock())) {
      request.headers.set(name, value)
    }
    return next
  }
  const body = hashOfBody(exchange, scope.service)
  return typeof body === 'string' ? finish(body) : body.then(finish)
}

/** Rejects with `body_too_large` if the body is too large to be buffered and hashed. */
function hashOfBody(
  { requestBody, bufferLimit }: Exchange,
  service: string,
): string | Promise<string> {
  if (requestBody.length === 0) return payloadHash(undefined)
  // S3 objects can have any size, and S3 accepts requests without the hash of the body.
  if (service === 's3') return unsignedPayload
  const { known } = requestBody
  if (known?.complete === true) return payloadHash(known.bytes)
  return requestBody.buffer(bufferLimit).then((body) => {
    if (!body.complete) throw new GatewayError('body_too_large')
    return payloadHash(body.bytes)
  })
}
