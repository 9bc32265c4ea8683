/** Errors of the gateway in the form that clients of A2A read. */
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import type { A2aRequest } from '../protocol/message.ts'

/** Codes of JSON-RPC 2.0. */
const invalidRequest = -32600
const invalidParams = -32602
const internal = -32603

/** Names of google.rpc.Code, which errors of the binding HTTP+JSON have. */
const statusNames: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** Returns how errors are written; undefined for plain text, or for gRPC. */
export function errorWriterOf(request: A2aRequest | undefined): ErrorWriter | undefined {
  if (request === undefined || request.binding === 'GRPC') return undefined
  if (request.binding === 'HTTP+JSON') {
    return (code, message) =>
      JSON.stringify({ error: { code, status: statusNames[code] ?? 'INTERNAL', message } })
  }
  const { id = 'null' } = request
  return (status, message) => {
    const code = status >= 500 ? internal : status === 400 ? invalidParams : invalidRequest
    return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message })}}`
  }
}
