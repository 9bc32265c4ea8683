/** Errors in the format that clients of a route type understand. */
import type { SpentLimit } from '../../../ground/exchange/exchange.ts'
import type { ProviderError } from '../chat.ts'
import { openAiErrors } from '../formats/completions/index.ts'
import { formatOf, type RouteType } from '../formats/index.ts'
import type { JsonObject } from '../json/json.ts'

/** Wait after which clients should give up, if they can be told, instead of repeating the request. */
const longWaitMs = 60_000

const formOf = (route: RouteType) => formatOf(route)?.errors ?? openAiErrors

/** Like `writeErrorFor`, for a rate limit of the gateway. */
export function writeLimitErrorFor(
  route: RouteType,
  status: number,
  { message, waitMs }: SpentLimit,
): JsonObject {
  const { finalCode: code } = formOf(route)
  if (code === undefined || waitMs <= longWaitMs) return writeErrorFor(route, { status, message })
  return writeErrorFor(route, { status, message, kind: code, code })
}

export const writeErrorFor = (route: RouteType, error: ProviderError): JsonObject =>
  formOf(route).write(error)
