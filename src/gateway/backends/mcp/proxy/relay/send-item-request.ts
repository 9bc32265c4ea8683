/** Sends requests for items to their targets, with the settings for calls. */
import type { McpRequest } from '../../message.ts'
import { type LocatedItem, requestFor } from '../calls/located-item.ts'
import { ProtectedCall } from '../calls/protected-call.ts'
import type { ClientResponse, MessageStream } from '../exchange/message-stream.ts'
import type { OnAbandon, ReceivedResponse } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { TargetSender } from './target-sender.ts'

interface ItemSending {
  readonly upstreams: Upstreams
  readonly sender: TargetSender
  readonly messageStream: MessageStream
  readonly onAbandon: OnAbandon
  /** Reads the list of tools again if the copy is old. */
  readonly refreshTools: () => Promise<void> | undefined
}

/** `sent` is called when the request is sent. Resolves to the response of the target, or to one of the gateway. */
export function sendItemRequest(
  { upstreams, sender, messageStream, onAbandon, refreshTools }: ItemSending,
  request: McpRequest,
  located: LocatedItem,
  sent?: () => void,
): Promise<ReceivedResponse | ClientResponse> {
  const { entry } = located
  const policy = upstreams.exchange.callPolicyOf(entry)
  if (policy === undefined) {
    sent?.()
    return sender.send(entry, requestFor(request, located))
  }
  const call = new ProtectedCall({
    upstreams,
    policy,
    located,
    messageStream,
    onAbandon,
    refreshTools,
    send: (one, limitMs) => {
      sent?.()
      const asked = requestFor(one, located)
      const isWhole = limitMs === 0 && !policy.changesResults
      return isWhole ? sender.send(entry, asked) : sender.sendWithin(entry, asked, limitMs)
    },
  })
  return call.run(request)
}
