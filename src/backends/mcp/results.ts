/** Results and notifications of one target among several, as clients are to see them. */
import { type JsonNode, member, rawOf, splice, textOf } from './json/scan.ts'
import type { McpMessage, McpResponse } from './message.ts'
import { clientId, clientUri } from './naming.ts'

interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A string in another one's place. */
function replaceText(text: string, node: JsonNode | undefined, change: (value: string) => string) {
  const value = textOf(text, node)
  if (node === undefined || value === undefined) return []
  return [{ start: node.start, end: node.end, text: JSON.stringify(change(value)) }]
}

/** The answer to a call: URIs in it can be read, so they must be those that clients know. */
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

const uriEdits = (target: string, text: string, node: JsonNode | undefined): Edit[] =>
  replaceText(text, member(node, 'uri'), (uri) => clientUri(target, uri))

/** A link to a resource, or a resource that is embedded. */
function blockEdits(target: string, text: string, block: JsonNode): Edit[] {
  const type = textOf(text, member(block, 'type'))
  if (type === 'resource_link') return uriEdits(target, text, block)
  return type === 'resource' ? uriEdits(target, text, member(block, 'resource')) : []
}

/**
 * What a server sends by itself. Ids and progress tokens of its requests are made ones that lead
 * back to it; those of the client's own requests are the client's, whatever the target.
 */
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
