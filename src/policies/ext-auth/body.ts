import type { Exchange, RespondVerdict } from '../../exchange/exchange.ts'
import { tooLarge } from './refusals.ts'

/** The body for the service; undefined where none is to be sent, a refusal where it is too large. */
export async function bodyFor(
  { requestBody }: Exchange,
  maxBytes: number | undefined,
): Promise<Uint8Array | RespondVerdict | undefined> {
  if (maxBytes === undefined) return undefined
  const { length } = requestBody
  if (length !== undefined && length > maxBytes) return tooLarge
  const body = await requestBody.buffer(maxBytes)
  return body.complete && body.bytes.length <= maxBytes ? body.bytes : tooLarge
}
