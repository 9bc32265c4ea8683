/** Processors of requests for one item, which see it by the name that its server knows. */
import { jsonValue, member, replace, textOf } from '../../json/node.ts'
import { type McpRequest, readRequest } from '../../message.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { refusedCall } from './call-refusal.ts'
import { type LocatedItem, unknownItem } from './located-item.ts'
import { type ProcessorChain, processRequest } from './run-processors.ts'

interface ProcessedItem {
  /** The request with the item's name for clients. */
  readonly request: McpRequest
  /** The parsed arguments. */
  readonly args: unknown
}

/** Returns the request after the processors, or the response if one refuses it, or if the rules refuse what it became. */
export async function processItem(
  chain: ProcessorChain,
  located: LocatedItem,
  request: McpRequest,
): Promise<ProcessedItem | ClientResponse> {
  const { called, item, args } = located
  const native = named(located, request, item.name)
  const processed = await processRequest(chain, native)
  if (!('kind' in processed)) return processed
  if (processed === native) return { request, args }
  const { exchange, era, entry } = chain
  const { text, params, method } = processed
  if (textOf(text, located.nodeIn(processed)) !== item.name) {
    exchange.noteRefusal(entry, `${method}: a processor has named another ${item.type}`)
    exchange.noteRefusedBy('processor')
    return refusedCall(request, era, 'The request could not be checked')
  }
  const node = member(params, 'arguments')
  const changed = node && jsonValue(text, node)
  const before = exchange.details
  // Rules may depend on arguments.
  if (!exchange.mayUse(entry, method, item, changed)) {
    return unknownItem(request, item.type, called)
  }
  exchange.noteVersion(before?.version)
  exchange.noteArguments(before?.args)
  return { request: named(located, processed, called), args: changed }
}

function named({ nodeIn }: LocatedItem, request: McpRequest, name: string): McpRequest {
  const node = nodeIn(request)
  if (node === undefined || textOf(request.text, node) === name) return request
  return readRequest(replace(request.text, node, JSON.stringify(name))) ?? request
}
