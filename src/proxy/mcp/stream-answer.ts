import type { ResponseStream } from '../../engine/types.ts'
import { LocalExchange } from '../local-exchange.ts'
import { changeResponse, changesResponse } from '../response.ts'
import type { Walk } from '../walk.ts'

type Headers = readonly (readonly [string, string])[]

/**
 * Begins a response of the gateway's own whose body comes bit by bit; what has taken effect on the
 * request changes its head. Undefined where the client has gone.
 */
export async function streamAnswer(
  walk: Walk,
  status: number,
  headers: Headers,
): Promise<ResponseStream | undefined> {
  const { exchange } = walk
  if (!changesResponse(walk)) return exchange.respondStream(status, headers)
  const local = new LocalExchange(exchange, { status, headers, body: undefined })
  await changeResponse(walk, local)
  if (walk.over) return undefined
  const changed = local.finished()
  return exchange.respondStream(changed.status, changed.headers)
}
