import {
  type Exchange,
  type RespondVerdict,
  refuse,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'

/** Calls an authorization service over HTTP or gRPC. */
export interface Authorizer {
  authorize(exchange: Exchange): Promise<Verdict>
}

/** Default timeout of the call. A timeout of the backend overrides it. */
export const timeoutMs = 2_000

/** Returns the response if the service cannot be reached, or if its refusal cannot be sent to the client. */
export const failed = (detail: string): RespondVerdict =>
  refuse(403, 'ExtAuth', 'external authorization failed', detail)

const tooLarge = (maxBytes: number): RespondVerdict => ({
  ...failed(`the body has more than ${maxBytes} bytes`),
  status: 413,
})

/** Resolves to the body for the service, undefined if none is sent, or a refusal if it is too large. */
export async function bodyFor(
  { requestBody }: Exchange,
  maxBytes: number | undefined,
): Promise<Uint8Array | RespondVerdict | undefined> {
  if (maxBytes === undefined) return undefined
  const { length } = requestBody
  if (length !== undefined && length > maxBytes) return tooLarge(maxBytes)
  const body = await requestBody.buffer(maxBytes)
  return body.complete && body.bytes.length <= maxBytes ? body.bytes : tooLarge(maxBytes)
}
