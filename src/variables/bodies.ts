import type { Exchange } from '../exchange/exchange.ts'

/** Which bodies something reads. */
export interface BodyNeeds {
  readonly request: boolean
  readonly response: boolean
}

/**
 * Reads the bodies that are needed into memory, up to the limit of the Gateway; undefined where that
 * is done already. A body over the limit is an error to whoever reads it, and still sent on.
 *
 * @throws GatewayError (as a rejection) where a body is malformed or its sender is gone
 */
export function bufferBodies(
  { requestBody, responseBody, bufferLimit }: Exchange,
  { request, response }: BodyNeeds,
): Promise<unknown> | undefined {
  const first =
    request && requestBody.known === undefined ? requestBody.buffer(bufferLimit) : undefined
  const second =
    response && responseBody !== undefined && responseBody.known === undefined
      ? responseBody.buffer(bufferLimit)
      : undefined
  return first === undefined || second === undefined
    ? (first ?? second)
    : Promise.all([first, second])
}
