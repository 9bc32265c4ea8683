/** Reserved keys of `_meta` (2026-07-28, general fields). */
const prefix = 'io.modelcontextprotocol/'

export const metaKeys = {
  version: `${prefix}protocolVersion`,
  clientInfo: `${prefix}clientInfo`,
  capabilities: `${prefix}clientCapabilities`,
  logLevel: `${prefix}logLevel`,
  subscription: `${prefix}subscriptionId`,
  serverInfo: `${prefix}serverInfo`,
} as const

/** Members of params with which a client repeats a request after an `input_required` result. */
export const roundKeys = ['inputResponses', 'requestState']

/** The keys of an envelope. Parsers that ignore case would also read others, which are refused. */
export const envelopeKeys: readonly string[] = [
  metaKeys.version,
  metaKeys.clientInfo,
  metaKeys.capabilities,
  metaKeys.logLevel,
]
