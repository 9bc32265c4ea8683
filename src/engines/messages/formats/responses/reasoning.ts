/**
 * Thinking in the responses format is an item before the content that it leads to. Clients send such
 * items back unchanged. `encrypted_content`, which is opaque to clients, contains the data with which
 * the provider verifies its thinking.
 */
import { hash } from 'node:crypto'
import type { RedactedThinkingBlock, ThinkingBlock } from '../../chat.ts'
import { type JsonObject, listAt, parseJson, stringAt } from '../../json/json.ts'

/** Prefix of `encrypted_content` in items that this gateway wrote. */
export const ownPrefix = 'sluice.'

/** Data with which a provider verifies thinking that is sent back to it. */
export interface Proof {
  readonly signature?: string | undefined
  /** The whole thinking in encrypted form, if only the provider can read it. */
  readonly redacted?: string | undefined
}

const digestOf = (text: string): string => hash('sha256', text, 'base64url')

function encodeProof(text: string, { signature, redacted }: Proof): string {
  const fields = redacted === undefined ? { signature, digest: digestOf(text) } : { redacted }
  return ownPrefix + Buffer.from(JSON.stringify(fields)).toString('base64url')
}

/** Returns a finished reasoning item. */
export function reasoningItem(id: string, text: string, proof: Proof): JsonObject {
  const summary = text === '' ? [] : [summaryPart(text)]
  return { id, type: 'reasoning', summary, encrypted_content: encodeProof(text, proof) }
}

export const summaryPart = (text: string): JsonObject => ({ type: 'summary_text', text })

/** Returns true if this gateway wrote the item; the vendor of the format rejects such items. */
export function isOwnReasoning(item: unknown): boolean {
  if (stringAt(item, 'type') !== 'reasoning') return false
  return stringAt(item, 'encrypted_content')?.startsWith(ownPrefix) === true
}

/** Reads the thinking of an item; returns nothing if its text was changed after it was signed. */
export function readReasoning(item: unknown): (ThinkingBlock | RedactedThinkingBlock)[] {
  const content = stringAt(item, 'encrypted_content') ?? ''
  if (!isOwnReasoning(item)) return []
  const encoded = content.slice(ownPrefix.length)
  const proof = parseJson(Buffer.from(encoded, 'base64url').toString('utf8'))
  const data = stringAt(proof, 'redacted')
  if (data !== undefined) return [{ type: 'redacted-thinking', data }]
  const text = listAt(item, 'summary')
    .map((part) => stringAt(part, 'text') ?? '')
    .join('')
  const signature = stringAt(proof, 'signature')
  if (stringAt(proof, 'digest') !== digestOf(text)) return []
  return [{ type: 'thinking', text, signature }]
}
