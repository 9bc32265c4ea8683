/** GatewayBudgets of calls of tools, such as those whose `each` is `mcp.tool.name`. */
import { budgetsOf, type CallBudgets } from '../../../../../ground/exchange/budgets.ts'
import type { McpRequest } from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import type { ReceivedResponse } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { refusedCall } from './call-refusal.ts'
import { itemOfCall, type LocatedItem } from './located-item.ts'

type Answer = ReceivedResponse | ClientResponse

/** Returns the budgets of a call; undefined if there are none, or if the request is not a call of a tool. */
export function callBudgetsOf(
  { client, context }: McpExchange,
  method: string,
): CallBudgets | undefined {
  if (method !== 'tools/call') return undefined
  // A message of the older transport may have come to another thread, but budgets belong to this one.
  return (client.budgets ?? budgetsOf(context.exchange))?.forCall()
}

/** Makes a call if its budgets admit it. `call` must call `sent` when it sends the call, which charges them. */
export async function withinBudgets(
  budgets: CallBudgets,
  { exchange, era }: Upstreams,
  located: LocatedItem,
  request: McpRequest,
  call: (sent: () => void) => Promise<Answer>,
): Promise<Answer> {
  const refused = await budgets.count(exchange.client)
  if (refused !== undefined) {
    const detail = refused.detail ?? refused.reason
    exchange.noteRefusal(located.entry, `${itemOfCall(request, located)}: ${detail}`)
    exchange.noteRefusedBy('budget')
    const { body } = refused
    return refusedCall(request, era, typeof body === 'string' ? body : 'The budget is exhausted')
  }
  try {
    // The client may have gone while the budget was asked, and nothing may run without a charge.
    if (exchange.client.isOver) return refusedCall(request, era, 'The client has gone')
    return await call(() => budgets.end(true))
  } finally {
    budgets.end(false)
  }
}
