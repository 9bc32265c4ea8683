/** Calls of tools in responses, for expressions. */
import { type AddCall, type OutputCall, textAt } from '../../common/output-call.ts'
import { field, type JsonObject, listAt, numberAt, objectAt, stringAt } from '../../json/json.ts'

const readCall = (block: unknown): OutputCall => ({
  id: textAt(block, 'id'),
  name: textAt(block, 'name'),
  arguments: '',
})

export const callsInMessage = (body: JsonObject): OutputCall[] =>
  listAt(body, 'content')
    .filter((block) => field(block, 'type') === 'tool_use')
    .map((block) => ({
      ...readCall(block),
      arguments: JSON.stringify(field(block, 'input') ?? {}),
    }))

export function addMessagesCalls(event: JsonObject, add: AddCall): void {
  const key = `${numberAt(event, 'index') ?? 0}`
  const block = objectAt(event, 'content_block')
  const delta = objectAt(event, 'delta')
  if (event.type === 'content_block_start' && stringAt(block, 'type') === 'tool_use') {
    add(key, readCall(block))
  } else if (stringAt(delta, 'type') === 'input_json_delta') {
    add(key, { id: '', name: '', arguments: textAt(delta, 'partial_json') })
  }
}
