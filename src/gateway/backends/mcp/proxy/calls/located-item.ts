/** An item that a client wants to use, and the response if it cannot. */
import type { McpItem } from '../../../../../ground/exchange/mcp.ts'
import { type Edit, type JsonNode, splice } from '../../json/node.ts'
import { codes, errorText } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import { consentEdit } from '../exchange/consent.ts'
import { itemText } from '../exchange/mcp-exchange.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { OutgoingRequest } from '../target/transport.ts'

export interface LocatedItem {
  readonly entry: McpTargetEntry
  readonly item: McpItem
  /** The item's name for clients. */
  readonly called: string
  /** The parsed arguments, if anything reads them. */
  readonly args: unknown
  /** Returns the position of the item's name in a request for it. */
  nodeIn(request: McpRequest): JsonNode | undefined
}

export const refusal = (
  { id }: Pick<McpRequest, 'id'>,
  code: number,
  message: string,
): ClientResponse => ({
  text: errorText(id, code, message),
})

/** `isClash` says that several targets have an item with the name. */
export const unknownItem = (
  request: McpRequest,
  type: string,
  called: string,
  isClash = false,
): ClientResponse => {
  const why = isClash ? `. Several servers have it: use a name of ${type}s/list` : ''
  return refusal(request, codes.invalidParams, `Unknown ${type}: ${called}${why}`)
}

/** Returns the request with the name by which its target knows the item. */
export function requestFor(
  request: McpRequest,
  { item, called, nodeIn }: Pick<LocatedItem, 'item' | 'called' | 'nodeIn'>,
): OutgoingRequest {
  const { name } = item
  const { id, method } = request
  const node = called === name ? undefined : nodeIn(request)
  const edits = editsFor(request, node, name)
  if (edits === undefined) return { text: request.text, bytes: request.bytes, id, method, name }
  return { text: splice(request.text, edits), id, method, name }
}

/** Names the request in the record of a decision. */
export const itemOfCall = ({ method }: Pick<McpRequest, 'method'>, { item }: LocatedItem): string =>
  `${method} of ${itemText(item)}`

/** The edits for the target; undefined if there are none. `name` replaces the item's name at `node` if there is one. */
function editsFor(
  request: McpRequest,
  node: JsonNode | undefined,
  name: string,
): readonly Edit[] | undefined {
  const consent = consentEdit(request)
  if (node === undefined) return consent && [consent]
  const renaming = { start: node.start, end: node.end, text: JSON.stringify(name) }
  if (consent === undefined) return [renaming]
  return consent.start < node.start ? [consent, renaming] : [renaming, consent]
}
