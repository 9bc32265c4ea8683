/** The items of a list that a client may see, by the rules of the target. */
import type { McpItem } from '../../../../../ground/exchange/mcp.ts'
import type { Keeps } from '../../lists.ts'
import type { ListMethod } from '../../methods.ts'
import { itemText, type McpExchange } from '../exchange/mcp-exchange.ts'
import type { McpTargetEntry } from '../target/targets.ts'

/** Returns a filter for the items that the client may see; undefined if the target has no rules. */
export function itemFilter(
  exchange: McpExchange,
  entry: McpTargetEntry,
  { type, name: method }: Pick<ListMethod, 'type' | 'name'>,
): Keeps | undefined {
  const rules = exchange.rulesOf(entry)
  if (rules === undefined) return undefined
  let isNoted = false
  return (name) => {
    const item: McpItem = { type, target: entry.target.name, name }
    exchange.describeListed(method, item)
    const refusal = rules.refusal(exchange.client, { method, item, isListed: true })
    if (refusal === undefined) return true
    // One example per list, because lists may be long.
    if (!isNoted) {
      const text = `${method} hides items, such as ${itemText(item)}: ${refusal}`
      exchange.noteRefusal(entry, text, false)
    }
    isNoted = true
    return false
  }
}
