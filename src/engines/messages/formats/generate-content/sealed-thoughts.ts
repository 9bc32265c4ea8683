/**
 * Thoughts of other vendors in signatures: clients of vendor D send signatures of function calls back, but drop
 * thoughts. Vendor D never gets such a signature.
 */
import type { RedactedThinkingBlock, ThinkingBlock } from '../../chat.ts'
import { type JsonObject, parseJson, stringAt } from '../../json/json.ts'

type Thought = ThinkingBlock | RedactedThinkingBlock

const mark = 'sluice'
/** How signatures begin: the mark in base64, of which each three bytes are four characters. */
const sealPrefix = Buffer.from(mark).toString('base64')

/** Returns a signature with thoughts, in base64 like the vendor's; undefined if other vendors need none of them. */
export function sealThoughts(thoughts: readonly Thought[]): string | undefined {
  const kept = thoughts.flatMap((thought): JsonObject[] => {
    if (thought.type === 'redacted-thinking') return [{ data: thought.data }]
    const { text, signature } = thought
    return signature === undefined ? [] : [{ text, signature }]
  })
  if (kept.length === 0) return undefined
  return Buffer.from(mark + JSON.stringify(kept)).toString('base64')
}

export const isSealedThought = (signature: string): boolean => signature.startsWith(sealPrefix)

/** Returns the thoughts in a signature; nothing for signatures of vendor D. */
export function openThoughts(signature: string): Thought[] {
  if (!isSealedThought(signature)) return []
  const text = Buffer.from(signature, 'base64').toString('utf8').slice(mark.length)
  const parsed = parseJson(text)
  const list: readonly unknown[] = Array.isArray(parsed) ? parsed : []
  return list.flatMap((one): Thought[] => {
    const data = stringAt(one, 'data')
    if (data !== undefined) return [{ type: 'redacted-thinking', data }]
    const own = stringAt(one, 'signature')
    if (own === undefined) return []
    return [{ type: 'thinking', text: stringAt(one, 'text') ?? '', signature: own }]
  })
}
