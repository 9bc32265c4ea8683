/** Whether a server that has refused a message still has the session of the message. */
import { gatewayRequestId } from '../../ids.ts'
import { isGoneStatus, TargetFailure, toFailure } from '../target/target-failure.ts'
import { askQuietly, gatewayRequest, type Transport } from '../target/transport.ts'

/**
 * What is sent to a target: a request, a notification, a response, or a GET for its stream or for the rest of the
 * stream of a request.
 */
export type MessageKind = 'request' | 'notice' | 'response' | 'stream' | 'resumption'

/** How long a server may take to respond to `ping`. */
const pingMs = 5_000

const ping = gatewayRequest('ping', '{}', gatewayRequestId('ping'))

/** Asks the server with `ping` whether it has the session. Resolves to undefined if it does not say. */
export async function isAlive(transport: Transport): Promise<boolean | undefined> {
  try {
    // Any response will do: a server that does not know the method knows the session.
    await askQuietly(transport, ping, pingMs)
    return true
  } catch (thrown) {
    return toFailure(thrown).mayHaveLostSession ? false : undefined
  }
}

/** Returns the failure of a message that the server has refused without losing the session. */
export function refusedInSession(
  { message, httpResponse, cause }: TargetFailure,
  kind: MessageKind,
): TargetFailure {
  const isInSession = true
  // 404 would make the client begin another session. Servers without a stream mean 405.
  if (httpResponse === undefined || !isGoneStatus(httpResponse.status)) {
    return new TargetFailure(message, { httpResponse, isInSession }, cause)
  }
  const changed = kind === 'stream' ? { ...httpResponse, status: 405 } : undefined
  return new TargetFailure(message, { httpResponse: changed, isInSession }, cause)
}
