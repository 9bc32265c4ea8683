/** Responses of one target as the client gets them. */
import { codes } from '../../json-rpc.ts'
import { unshared } from '../../lists.ts'
import { clientResult } from '../../results.ts'
import { refusal } from '../calls/located-item.ts'
import { consentText } from '../exchange/consent.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { isGoneStatus, SessionNeeded, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { errorResponse, type OutgoingRequest, type ReceivedResponse } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { fieldsForClient } from './client-relay.ts'

export function responseFrom(
  upstreams: Upstreams,
  entry: McpTargetEntry,
  { id }: Pick<OutgoingRequest, 'id'>,
  { response: given, eventFields, status }: ReceivedResponse,
): ClientResponse {
  const isOnly = upstreams.exchange.only !== undefined
  const response = upstreams.exchange.differsByClient(entry) ? unshared(given) : given
  return {
    text: isOnly ? response.text : clientResult(entry.target.name, response),
    bytes: isOnly ? response.bytes : undefined,
    eventFields: fieldsForClient(upstreams, entry, id, eventFields),
    status: statusForClient(upstreams, status),
  }
}

/** The status of an error is that of the only server. 404 would end the session of a legacy client. */
export function statusForClient(
  { era, exchange }: Upstreams,
  status: number | undefined,
): number | undefined {
  if (era === 'modern') return status
  return exchange.only === undefined || isGoneStatus(status ?? 200) ? undefined : status
}

/** Reports to the client that a target gave no response. Throws if the target is the only one. */
export function failedResponse(
  { era, capabilities, exchange }: Upstreams,
  entry: McpTargetEntry,
  request: OutgoingRequest,
  thrown: unknown,
): ClientResponse {
  const failure = toFailure(thrown)
  if (failure.consent !== undefined) {
    return { text: consentText(request, era, capabilities, failure.consent) }
  }
  if (exchange.only !== undefined) throw failure
  if (failure.isResumable && era === 'legacy') throw failure
  const own = failure instanceof SessionNeeded ? errorResponse(failure, request.id) : undefined
  if (own !== undefined) return { text: own.text, status: failure.httpResponse?.status }
  exchange.noteRefusal(entry, `target ${entry.target.name} failed: ${failure.message}`)
  return refusal(request, codes.internal, `${entry.target.name}: ${failure.message}`)
}
