/** Rewrites results and messages of a target for clients that see several targets. */
import { type Edit, type JsonNode, member, rawOf, splice, textOf } from './json/node.ts'
import type { McpMessage, McpResponse } from './message.ts'
import { clientId } from './naming.ts'
import { UriEdits } from './resource-uris.ts'

/** Rewrites the URIs in a response, because clients may read these resources. */
export function clientResult(target: string, { text, result, error }: McpResponse): string {
  const edits = new UriEdits(target, text)
  if (result !== undefined) edits.result(result)
  if (error !== undefined) edits.error(error)
  return splice(text, edits.all)
}

/** Adds the target to the ids and progress tokens of its requests, so that responses are routed back to it. */
export function clientMessage(target: string, message: McpMessage): string {
  if (message.kind === 'response') return message.text
  const { text, params } = message
  const edits = new UriEdits(target, text)
  const addId = (node: JsonNode | undefined) => node && edits.add(idEdit(target, text, node))
  if (message.kind === 'request') {
    addId(member(message.root, 'id'))
    addId(member(member(params, '_meta'), 'progressToken'))
    edits.request(params)
  } else if (message.method === 'notifications/resources/updated') edits.resource(params)
  else if (message.method === 'notifications/cancelled') addId(member(params, 'requestId'))
  return splice(text, edits.all)
}

function idEdit(target: string, text: string, node: JsonNode): Edit {
  const value = textOf(text, node)
  const id = value === undefined ? rawOf(text, node) : JSON.stringify(value)
  return { start: node.start, end: node.end, text: clientId(target, id) }
}
