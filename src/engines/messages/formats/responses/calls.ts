/** Calls of tools in responses, for expressions. */
import { type AddCall, type OutputCall, textAt } from '../../common/output-call.ts'
import { field, type JsonObject, listAt } from '../../json/json.ts'

/** Name of the field with the input, by the type of an item. */
const inputFields = new Map<unknown, string>([
  ['function_call', 'arguments'],
  ['custom_tool_call', 'input'],
])

function readCall(item: unknown): OutputCall[] {
  const input = inputFields.get(field(item, 'type'))
  if (input === undefined) return []
  const id = textAt(item, 'call_id')
  return [{ id, name: textAt(item, 'name'), arguments: textAt(item, input) }]
}

export const callsInResponse = (body: JsonObject): OutputCall[] =>
  listAt(body, 'output').flatMap(readCall)

export function addResponsesCalls(event: JsonObject, add: AddCall): void {
  if (event.type !== 'response.output_item.done') return
  for (const call of readCall(event.item)) add(call.id, call)
}
