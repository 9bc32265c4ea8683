/** Keeps what log and spans read of an exchange that is over; nothing is held up for them. */
import type { RequestContext } from './request/request-context.ts'

export function observeRequest({ observers, exchange }: RequestContext): void {
  if (observers.parts.requestBody) exchange.requestBody.record(exchange.bufferLimit)
}

export function observeResponse({ observers, exchange }: RequestContext): void {
  const { responseBody, responseHead } = observers.parts
  if (responseBody) exchange.responseBody?.record(exchange.bufferLimit)
  if (responseHead) exchange.keepResponseHead()
}

/** The status of a gRPC response stands in its head where there is nothing else. */
export function observeGrpc(context: RequestContext): void {
  const type = context.exchange.response?.headers.get('content-type')
  if (type === undefined || !type.startsWith('application/grpc')) return
  context.isGrpc = true
  context.exchange.keepResponseHead()
}
