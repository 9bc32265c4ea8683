import type { Exchange } from '../exchange/exchange.ts'

/** Which bodies must be in memory. */
export interface BodyNeeds {
  readonly request: boolean
  readonly response: boolean
}

/**
 * Reads the needed bodies into memory, up to the limit of the Gateway; returns undefined if they
 * are in memory already. A body over the limit reads as an error in expressions, and is still sent
 * on.
 *
 * @throws GatewayError (as a rejection) if a body is malformed or its sender is gone
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
