import type { ResponseStream } from '../../../engine/contracts/requests.ts'
import { LocalExchange } from '../../../proxy/request/local-exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { changeResponse, changesResponse } from '../../../proxy/request/response.ts'

type Headers = readonly (readonly [string, string])[]

/**
 * Begins a response of the gateway's own whose body comes bit by bit; what has taken effect on the
 * request changes its head. Undefined where the client has gone.
 */
export async function streamAnswer(
  context: RequestContext,
  status: number,
  headers: Headers,
): Promise<ResponseStream | undefined> {
  const { exchange } = context
  if (!changesResponse(context)) return exchange.respondStream(status, headers)
  const local = new LocalExchange(exchange, { status, headers, body: undefined })
  await changeResponse(context, local)
  if (context.over) return undefined
  const changed = local.finished()
  return exchange.respondStream(changed.status, changed.headers)
}
