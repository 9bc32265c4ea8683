/** The handlers of an engine that nothing uses yet. */
import { GatewayError } from '../../../ground/errors/index.ts'
import type { RequestHandler } from './requests.ts'
import type { StreamHandler } from './streams.ts'

export const refuseRequests: RequestHandler = {
  onRequest: (exchange) => exchange.respond(404, [], undefined),
  onResponse: (exchange) => exchange.relay(),
  onError: (exchange, { row }) => exchange.respond(row.status, [], undefined),
  onDone: () => {},
  onBadHead: () => {},
}

export const refuseStreams: StreamHandler = {
  onStream: (stream) => stream.refuse(new GatewayError('route_not_found')),
  onStreamError: (stream, error) => stream.refuse(error),
  onAlternateAddress: () => {},
  isCurrent: () => true,
  onStreamDone: () => {},
}
