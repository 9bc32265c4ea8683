/** Passes notifications and responses of a client to its targets. */
import { type JsonNode, member, replace, textOf } from '../../json/node.ts'
import { idIn, type McpNotification, type McpResponse } from '../../message.ts'
import { targetOfId } from '../../naming.ts'
import { approvalKey, isApprovalId } from '../calls/approval-question.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { notify, withLimit } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'

/** How long the client of several servers waits until all have got its notification. */
const noticeMs = 1_000

/** Passes on a notification or response. Rejects with SessionEnded, or if the only target refuses. */
export async function passOn(
  upstreams: Upstreams,
  message: McpNotification | McpResponse,
): Promise<void> {
  const { only, sessionId, shared } = upstreams.exchange
  if (message.kind === 'response' && message.id !== undefined && isApprovalId(message.id)) {
    shared.calls.respond(approvalKey(sessionId, message.id), message.text)
    return
  }
  if (only !== undefined) await send(upstreams, only, message.text, kindOf(message))
  else if (message.kind === 'response') await respond(upstreams, message)
  else await notifyAll(upstreams, message)
}

const kindOf = ({ kind }: McpNotification | McpResponse) =>
  kind === 'response' ? 'response' : 'notice'

async function send(
  upstreams: Upstreams,
  entry: McpTargetEntry,
  text: string,
  kind: 'notice' | 'response' = 'notice',
): Promise<void> {
  try {
    await upstreams.use(entry, (transport) => notify(transport, text), kind)
  } catch (thrown) {
    // The server does not know the notification, or has forgotten the question; neither needs a response.
    const isUnknown = thrown instanceof TargetFailure && thrown.isInSession
    if (!isUnknown || thrown.httpResponse !== undefined) throw thrown
  }
}

/** Passes a response to the server that its id names. */
async function respond(upstreams: Upstreams, message: McpResponse): Promise<void> {
  const found = message.id === undefined ? undefined : targetOfId(message.id)
  const entry = found && upstreams.exchange.find(found.target)
  const node = idIn(message.text)
  if (found === undefined || entry === undefined || node === undefined) return
  // A server without a session has asked nothing.
  if (!upstreams.has(entry.target.name)) return
  await send(upstreams, entry, replace(message.text, node, found.name), 'response')
}

async function notifyAll(upstreams: Upstreams, message: McpNotification): Promise<void> {
  const token = member(message.params, 'progressToken')
  const found = token?.type === 'string' ? serverOf(upstreams, message, token) : undefined
  if (found !== undefined) {
    await send(upstreams, found.entry, found.text)
    return
  }
  const { targets } = upstreams.exchange.backend
  const withSession = targets.filter(({ target }) => upstreams.has(target.name))
  // Rejects only with SessionEnded.
  const sent = withSession.map((entry) => send(upstreams, entry, message.text).catch(toFailure))
  // Servers get it before the next message of the client, unless they are slow.
  await withLimit(Promise.all(sent), noticeMs, () => {}).catch(toFailure)
}

/** Returns the target of a progress notification for a server's request, and the text for the target. */
function serverOf(upstreams: Upstreams, { text }: McpNotification, token: JsonNode) {
  const found = targetOfId(JSON.stringify(textOf(text, token)))
  const entry = found && upstreams.exchange.find(found.target)
  if (found === undefined || entry === undefined) return undefined
  return { entry, text: replace(text, token, found.name) }
}
