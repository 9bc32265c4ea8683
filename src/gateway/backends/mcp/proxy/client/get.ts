/** GET: the messages that servers send on their own, in one stream. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { newId } from '../../ids.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { MessageStream } from '../exchange/message-stream.ts'
import { lostSession, verdictOf } from '../exchange/refusals.ts'
import { ServerStreams, type StreamOutcome } from '../relay/server-streams.ts'
import { TargetFailure } from '../target/target-failure.ts'
import { withLimit } from '../target/transport.ts'
import { findSession, SessionEnded } from '../upstream/client-session.ts'

/** How long a client waits until each of several servers has begun or refused its stream. */
const openMs = 5_000

export function serveGet(
  exchange: McpExchange,
): RespondVerdict | Promise<RespondVerdict | undefined> {
  const session = findSession(exchange)
  if ('kind' in session) return session
  const { context, shared, notes } = exchange
  const from = context.exchange.request.headers.get('last-event-id')
  const messageStream = new MessageStream(exchange)
  const streams = new ServerStreams(session, messageStream, from)
  const key = `stream ${newId()}`
  shared.live(session.state).held.set(key, { close: () => messageStream.end() })
  // A session with an open stream stays in memory.
  messageStream.keepOpen(() => shared.live(session.state))
  notes.onClose(() => {
    shared.known(session.state)?.held.delete(key)
    streams.close()
    messageStream.end()
  })
  const isOnly = exchange.only !== undefined
  // One silent server does not keep the client from the streams of the others.
  const opening = withLimit(streams.open(), isOnly ? 0 : openMs, () => messageStream.open())
  opening.then(
    (failures) => settle(messageStream, failures, isOnly),
    (thrown) => {
      if (!(thrown instanceof TargetFailure)) messageStream.fail(thrown)
    },
  )
  return messageStream.result
}

/** If no server has a stream, sends the client the reason. */
function settle(
  messageStream: MessageStream,
  failures: readonly StreamOutcome[],
  isOnly: boolean,
): void {
  if (failures.includes(undefined)) return
  const [first] = failures
  const isRefused = failures.every(
    (one) => one instanceof TargetFailure && one.httpResponse?.status === 405,
  )
  const isLost = first === undefined || failures.some((one) => one instanceof SessionEnded)
  if (messageStream.isStream) {
    // The gateway has something to report itself, so that the stream has begun.
    if (isLost || isOnly) messageStream.end()
  } else if (isLost) {
    messageStream.respond(lostSession())
  } else if (first instanceof TargetFailure && (isRefused || isOnly)) {
    messageStream.respond(verdictOf(first, undefined))
  } else messageStream.open()
}
