/** Rewrites results and messages of a target for clients that see several targets. */
import { type Edit, type JsonNode, member, rawOf, splice, textOf } from './json/node.ts'
import type { McpMessage, McpResponse } from './message.ts'
import { clientId, clientUri } from './naming.ts'

/** Rewrites the URIs in a response, because clients may read these resources. */
export function clientResult(target: string, { text, result }: McpResponse): string {
  if (result === undefined) return text
  const edits: Edit[] = []
  for (const block of member(result, 'content')?.values ?? []) {
    edits.push(...blockEdits(target, text, block))
  }
  for (const content of member(result, 'contents')?.values ?? []) {
    edits.push(...uriEdits(target, text, content))
  }
  for (const message of member(result, 'messages')?.values ?? []) {
    const content = member(message, 'content')
    const blocks = content?.type === 'array' ? (content.values ?? []) : content ? [content] : []
    for (const block of blocks) edits.push(...blockEdits(target, text, block))
  }
  return splice(text, edits)
}

function uriEdits(target: string, text: string, node: JsonNode | undefined): Edit[] {
  const found = member(node, 'uri')
  const uri = textOf(text, found)
  if (found === undefined || uri === undefined) return []
  return [{ start: found.start, end: found.end, text: JSON.stringify(clientUri(target, uri)) }]
}

/** Returns the edits for a content block that links to a resource or embeds one. */
function blockEdits(target: string, text: string, block: JsonNode): Edit[] {
  const type = textOf(text, member(block, 'type'))
  if (type === 'resource_link') return uriEdits(target, text, block)
  return type === 'resource' ? uriEdits(target, text, member(block, 'resource')) : []
}

/** Adds the target to the ids and progress tokens of its requests, so that answers are routed back to it. */
export function clientMessage(target: string, message: McpMessage): string {
  const { text } = message
  if (message.kind === 'request') {
    const token = member(member(message.params, '_meta'), 'progressToken')
    const id = member(message.root, 'id')
    return splice(
      text,
      [id, token]
        .flatMap((node) => (node === undefined ? [] : [idEdit(target, text, node)]))
        .sort((a, b) => a.start - b.start),
    )
  }
  if (message.kind === 'response') return text
  switch (message.method) {
    case 'notifications/resources/updated':
      return splice(text, uriEdits(target, text, message.params))
    case 'notifications/cancelled': {
      const id = member(message.params, 'requestId')
      return id === undefined ? text : splice(text, [idEdit(target, text, id)])
    }
    default:
      return text
  }
}

function idEdit(target: string, text: string, node: JsonNode): Edit {
  const value = textOf(text, node)
  const id = value === undefined ? rawOf(text, node) : JSON.stringify(value)
  return { start: node.start, end: node.end, text: clientId(target, id) }
}
