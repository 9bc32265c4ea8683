/** Truncates results of tools that are too large. */
import { type JsonNode, member, membersOf, rawOf, textOf } from '../../json/node.ts'
import { resultText } from '../../json-rpc.ts'
import type { McpResponse } from '../../message.ts'

/** Maximum bytes of the note and the frame of a result. */
const reserved = 512

/** Returns the response with a result of at most about `max` bytes. `size` is its size now. */
export function cutResult({ text, id, result }: McpResponse, size: number, max: number): string {
  const kept = membersOf(text, result, ['content', 'structuredContent', 'isError'])
  const blocks: string[] = []
  let left = max - reserved - Buffer.byteLength(kept.join(','))
  for (const node of member(result, 'content')?.values ?? []) {
    const block = cutBlock(text, node, left)
    if (block !== undefined) blocks.push(block)
    left -= block === undefined ? 0 : Buffer.byteLength(block)
  }
  const structured = member(result, 'structuredContent')
  const raw = structured && rawOf(text, structured)
  const fits = raw === undefined || Buffer.byteLength(raw) <= left
  if (raw !== undefined && fits) kept.push(`"structuredContent":${raw}`)
  // Clients refuse a result without the structured content that the tool promises, unless it is an error.
  const isError = member(result, 'isError')
  if (!fits) kept.push('"isError":true')
  else if (isError !== undefined) kept.push(`"isError":${rawOf(text, isError)}`)
  const what = fits ? '' : ' Its structured content was left out.'
  const statement = `[The gateway cut this result: it has ${size} bytes, and at most ${max} are allowed.${what} Ask for less, for example with a filter or a page.]`
  blocks.push(JSON.stringify({ type: 'text', text: statement }))
  const content = `"content":[${blocks.join(',')}]`
  return resultText(id ?? 'null', `{${[content, ...kept].join(',')}}`)
}

/** Returns a block that fits in the bytes that are left; undefined if nothing of it does. */
function cutBlock(text: string, node: JsonNode, left: number): string | undefined {
  const raw = rawOf(text, node)
  if (Buffer.byteLength(raw) <= left) return raw
  const shown = textOf(text, member(node, 'text'))
  if (textOf(text, member(node, 'type')) !== 'text' || shown === undefined || left < 64) {
    return undefined
  }
  return JSON.stringify({ type: 'text', text: startOf(shown, left - 32) })
}

/** The start of a text whose JSON has at most `max` bytes. No character is split. */
function startOf(text: string, max: number): string {
  let bytes = 0
  let at = 0
  for (const one of text) {
    bytes += Buffer.byteLength(JSON.stringify(one)) - 2
    if (bytes > max) break
    at += one.length
  }
  return text.slice(0, at)
}
