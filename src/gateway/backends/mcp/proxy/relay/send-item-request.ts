/** Sends requests for items to their targets, with the budgets and the settings for calls. */
import type { CallBudgets } from '../../../../../ground/exchange/budgets.ts'
import type { McpRequest, McpResponse } from '../../message.ts'
import type { ListMethod } from '../../methods.ts'
import type { CallPolicy } from '../../policy/call-policy.ts'
import { saysUnknown } from '../../results.ts'
import { callBudgetsOf, withinBudgets } from '../calls/call-budgets.ts'
import { type LocatedItem, requestFor, unknownItem } from '../calls/located-item.ts'
import { ProtectedCall } from '../calls/protected-call.ts'
import type { ClientResponse, MessageStream } from '../exchange/message-stream.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { OnAbandon, ReceivedResponse } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { refreshList } from './pinned-items.ts'
import type { TargetSender } from './target-sender.ts'

export interface ItemSending {
  readonly upstreams: Upstreams
  readonly sender: TargetSender
  readonly messageStream: MessageStream
  readonly onAbandon: OnAbandon
  /** Asks a target for the whole of a list. */
  askList(entry: McpTargetEntry, request: McpRequest, method: ListMethod): Promise<void>
}

type Sent = Promise<ReceivedResponse | ClientResponse>

/** Resolves to the response of the target, or to one of the gateway. Closures are made only if something needs them. */
export function sendItemRequest(
  sending: ItemSending,
  request: McpRequest,
  located: LocatedItem,
): Sent {
  const budgets = callBudgetsOf(sending.upstreams.exchange, request.method)
  return budgets === undefined
    ? send(sending, request, located)
    : sendWithinBudgets(budgets, sending, request, located)
}

const sendWithinBudgets = (
  budgets: CallBudgets,
  sending: ItemSending,
  request: McpRequest,
  located: LocatedItem,
): Sent =>
  withinBudgets(budgets, sending.upstreams, located, request, (sent) =>
    send(sending, request, located, sent),
  )

/** `sent` is called when the request is sent. */
function send(
  sending: ItemSending,
  request: McpRequest,
  located: LocatedItem,
  sent?: () => void,
): Sent {
  const { entry } = located
  const policy = sending.upstreams.exchange.callPolicyOf(entry)
  if (policy !== undefined) return sendProtected(policy, sending, request, located, sent)
  sent?.()
  return sending.sender.send(entry, requestFor(request, located))
}

function sendProtected(
  policy: CallPolicy,
  sending: ItemSending,
  request: McpRequest,
  located: LocatedItem,
  sent?: () => void,
): Sent {
  const { upstreams, sender, messageStream, onAbandon } = sending
  const { entry } = located
  const call = new ProtectedCall({
    upstreams,
    policy,
    located,
    messageStream,
    onAbandon,
    refreshTools: () =>
      refreshList(entry, 'tools', (method) => sending.askList(entry, request, method)),
    send: (one, limitMs) => {
      sent?.()
      const asked = requestFor(one, located)
      const isWhole = limitMs === 0 && !policy.changesResults
      return isWhole ? sender.send(entry, asked) : sender.sendWithin(entry, asked, limitMs)
    },
  })
  return call.run(request)
}

/** Gives the response to a request for an item that does not exist, if that is what a server says. */
export const unknownItemOf =
  (request: McpRequest, { item, called }: LocatedItem) =>
  (response: McpResponse): ClientResponse | false =>
    saysUnknown(response, item.name) && unknownItem(request, item.type, called)
