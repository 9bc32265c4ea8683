/** An item that a client wants to use, and the response if it cannot. */
import type { McpItem } from '../../../../../ground/exchange/mcp.ts'
import type { JsonNode } from '../../json/node.ts'
import { codes, errorText } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import type { McpTargetEntry } from '../target/targets.ts'

export interface LocatedItem {
  readonly entry: McpTargetEntry
  readonly item: McpItem
  /** The item's name for clients, and its position in the request. */
  readonly called: string
  readonly node: JsonNode
}

export const refusal = (
  { id }: Pick<McpRequest, 'id'>,
  code: number,
  message: string,
): ClientResponse => ({
  text: errorText(id, code, message),
})

export const unknownItem = (request: McpRequest, type: string, called: string): ClientResponse =>
  refusal(request, codes.invalidParams, `Unknown ${type}: ${called}`)
