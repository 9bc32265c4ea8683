/** Builds the JSON-RPC messages that the gateway itself sends. `id` parameters are JSON. */

/** Error codes of JSON-RPC 2.0 and MCP. */
export const codes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
  /** The user must open a URL first (2025-11-25, URL elicitation). */
  elicitationRequired: -32042,
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

/**
 * Returns the error code of a response, if it has one. Error responses are short, so longer texts are not
 * parsed.
 */
export function errorCodeOf(text: string): number | undefined {
  if (text.length > 4_096 || !text.includes('"error"')) return undefined
  const { error } = JSON.parse(text) as { error?: { code?: unknown } }
  return typeof error?.code === 'number' ? error.code : undefined
}

/** Whether a response is the result of a tool that has failed. A text in the result has its quotes escaped. */
export const isToolError = (text: string): boolean =>
  text.includes('"isError":true') || text.includes('"isError": true')

/** Builds a response. `result` is JSON. */
export function resultText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

/** Builds a request. `params` is JSON. */
export function requestText(id: string, method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`
}

export function notificationText(method: string, params?: string): string {
  const rest = params === undefined ? '' : `,"params":${params}`
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${rest}}`
}
