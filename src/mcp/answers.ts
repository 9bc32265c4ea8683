/** JSON-RPC messages that the gateway writes itself. `id` is the JSON of an id. */

/** Codes of JSON-RPC 2.0 and MCP. */
export const codes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  resourceNotFound: -32002,
} as const

export function errorText(
  id: string | undefined,
  code: number,
  message: string,
  data?: unknown,
): string {
  const error = { code, message, ...(data !== undefined && { data }) }
  return `{"jsonrpc":"2.0","id":${id ?? 'null'},"error":${JSON.stringify(error)}}`
}

/** `result` is JSON. */
export function resultText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

/** `params` is JSON. */
export function requestText(id: string, method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`
}

export function notificationText(method: string, params?: string): string {
  const rest = params === undefined ? '' : `,"params":${params}`
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${rest}}`
}
