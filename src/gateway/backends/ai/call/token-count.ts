/** Responses to requests whose tokens the gateway counts itself. */
import { type ClientFormat, needCount } from '../../../../engines/messages/format.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import type { ModelCall } from './model-call.ts'
import { ownResponse } from './own-responses.ts'

/** Returns undefined if the request has ended. */
export async function countedResponse(
  call: ModelCall,
  format: ClientFormat,
  count: () => Promise<number>,
): Promise<RespondVerdict | undefined> {
  const tokens = await count()
  call.addDetails({ countTokens: tokens })
  return call.context.over ? undefined : ownResponse(200, needCount(format).writeResponse(tokens))
}
