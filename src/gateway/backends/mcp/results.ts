/** Results of a target: rewritten for clients that see several targets, and whether they say that an item is unknown. */
import { type Edit, type JsonNode, jsonValue, member, rawOf, splice, textOf } from './json/node.ts'
import { codes } from './json-rpc.ts'
import { idIn, type McpMessage, type McpResponse } from './message.ts'
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
    addId(idIn(text))
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

/** Codes with which servers say that an item is unknown; -32002 is that of resources up to 2025-11-25. */
const unknownCodes: readonly unknown[] = [codes.invalidParams, -32002]
const phrases = /not found|unknown|no such|does not exist|doesn't exist/i

/**
 * Whether the server says that it has no item with this name, so that refused items look like unknown ones. Some
 * servers say so in the result of the call.
 */
export function saysUnknown({ text, result, error }: McpResponse, name: string): boolean {
  if (error !== undefined) {
    const code = member(error, 'code')
    const isCode = code !== undefined && unknownCodes.includes(jsonValue(text, code))
    return isCode && isAboutItem(textOf(text, member(error, 'message')), name)
  }
  const isError = member(result, 'isError')
  if (isError === undefined || !text.startsWith('true', isError.start)) return false
  const [only, ...more] = member(result, 'content')?.values ?? []
  return more.length === 0 && isAboutItem(textOf(text, member(only, 'text')), name)
}

const isAboutItem = (message: string | undefined, name: string): boolean =>
  message?.includes(name) === true && phrases.test(message)
