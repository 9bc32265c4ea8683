/** Calls of tools in responses, for expressions. */
import { type AddCall, type OutputCall, textAt } from '../../common/output-call.ts'
import { type JsonObject, listAt, numberAt, objectAt } from '../../json/json.ts'

/** Reads a call, or a piece of a call, of a function or of a custom tool, which takes text. */
function readCall(call: unknown): OutputCall {
  const custom = objectAt(call, 'custom')
  const called = custom ?? objectAt(call, 'function')
  const input = textAt(called, custom === undefined ? 'arguments' : 'input')
  return { id: textAt(call, 'id'), name: textAt(called, 'name'), arguments: input }
}

export const callsInCompletion = (body: JsonObject): OutputCall[] =>
  listAt(body, 'choices')
    .flatMap((choice) => listAt(objectAt(choice, 'message'), 'tool_calls'))
    .map(readCall)

export function addCompletionsCalls(event: JsonObject, add: AddCall): void {
  for (const choice of listAt(event, 'choices')) {
    const index = numberAt(choice, 'index') ?? 0
    for (const piece of listAt(objectAt(choice, 'delta'), 'tool_calls')) {
      add(`${index}/${numberAt(piece, 'index') ?? 0}`, readCall(piece))
    }
  }
}
