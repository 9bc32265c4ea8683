/**
 * Thinking in the responses format: an item of its own in front of what follows from it. Clients
 * send such items back as they came. `encrypted_content`, which they take for opaque, holds what the
 * provider needs to know its thinking again.
 */
import { createHash } from 'node:crypto'
import type { RedactedThinkingBlock, ThinkingBlock } from '../../chat.ts'
import { type JsonObject, listAt, parseJson, stringAt } from '../../json.ts'

/** How the content of items that this gateway wrote begins; vendors write others. */
const seal = 'sluice.'

/** What a provider added to its thinking. */
export interface Proof {
  readonly signature?: string | undefined
  /** The whole, if nobody but the provider can read it. */
  readonly redacted?: string | undefined
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

function sealed(text: string, { signature, redacted }: Proof): string {
  const fields = signature ? { signature, digest: digestOf(text) } : { redacted }
  return seal + Buffer.from(JSON.stringify(fields)).toString('base64url')
}

/** A finished item. */
export function reasoningItem(id: string, text: string, proof: Proof): JsonObject {
  const summary = text === '' ? [] : [summaryPart(text)]
  return { id, type: 'reasoning', summary, encrypted_content: sealed(text, proof) }
}

export const summaryPart = (text: string): JsonObject => ({ type: 'summary_text', text })

/** Was the item written here? The vendor of the format does not know such items. */
export function isOwnReasoning(item: unknown): boolean {
  if (stringAt(item, 'type') !== 'reasoning') return false
  return stringAt(item, 'encrypted_content')?.startsWith(seal) === true
}

/** The thinking of an item; nothing if its text is not the one that was signed. */
export function readReasoning(item: unknown): (ThinkingBlock | RedactedThinkingBlock)[] {
  const content = stringAt(item, 'encrypted_content') ?? ''
  if (!isOwnReasoning(item)) return []
  const encoded = content.slice(seal.length)
  const proof = parseJson(Buffer.from(encoded, 'base64url').toString('utf8'))
  const data = stringAt(proof, 'redacted')
  if (data !== undefined) return [{ type: 'redacted-thinking', data }]
  const text = listAt(item, 'summary')
    .map((part) => stringAt(part, 'text') ?? '')
    .join('')
  const signature = stringAt(proof, 'signature')
  if (signature === undefined || stringAt(proof, 'digest') !== digestOf(text)) return []
  return [{ type: 'thinking', text, signature }]
}
