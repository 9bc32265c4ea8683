import type { Body, Exchange, HeaderFields } from '../../ground/exchange/exchange.ts'
import { codingOf, decodeAhead } from './decoded.ts'

/** Which bodies must be in memory. */
export interface BodyNeeds {
  readonly request: boolean
  readonly response: boolean
}

/**
 * Reads the needed bodies into memory, up to the limit of the Gateway, and decodes them; returns undefined if
 * that is done already. A body over the limit reads as an error in expressions, and is still sent on.
 *
 * @throws GatewayError (as a rejection) if a body is malformed or its sender is gone
 */
export function bufferBodies(
  exchange: Exchange,
  { request, response }: BodyNeeds,
): Promise<unknown> | undefined {
  const { bufferLimit } = exchange
  const first = request
    ? prepare(exchange.requestBody, exchange.request.headers, bufferLimit)
    : undefined
  const second = response
    ? prepare(exchange.responseBody, exchange.response?.headers, bufferLimit)
    : undefined
  return first === undefined || second === undefined
    ? (first ?? second)
    : Promise.all([first, second])
}

function prepare(
  body: Body | undefined,
  headers: HeaderFields | undefined,
  limit: number,
): Promise<unknown> | undefined {
  if (body === undefined || headers === undefined) return undefined
  const { known } = body
  if (known !== undefined) return decodeAhead(known, headers, limit)
  const reading = body.buffer(limit)
  return codingOf(headers) === undefined
    ? reading
    : reading.then((read) => decodeAhead(read, headers, limit))
}
