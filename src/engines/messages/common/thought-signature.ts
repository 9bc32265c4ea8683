/**
 * Signatures that vendor D sends with tool calls and requires back. They are appended to the ids of
 * calls, which every client sends back. Other providers get the ids without signatures.
 */
import { parseJson } from '../json/json.ts'

const separator = '__thought__'

/** The signature that vendor D accepts for calls of other vendors' models. */
export const standInSignature = 'skip_thought_signature_validator'

export function idWithSignature(id: string, signature: string | undefined): string {
  return signature === undefined ? id : `${id}${separator}${signature}`
}

/** Returns the id without its signature. */
export function bareId(id: string): string {
  const at = id.indexOf(separator)
  return at < 0 ? id : id.slice(0, at)
}

export function signatureOf(id: string): string | undefined {
  const at = id.indexOf(separator)
  return at < 0 ? undefined : id.slice(at + separator.length)
}

/** Prefix of signatures that this gateway made of reasoning that only vendor A can read. */
const sealPrefix = 'sluice.openai.'

/** Returns a signature with a reasoning item of vendor A, so that clients of other formats send it back. */
export const sealReasoning = (id: string, encrypted: string): string =>
  `${sealPrefix}${Buffer.from(JSON.stringify([id, encrypted])).toString('base64url')}`

/** Whether only vendor A can use a signature; others refuse it. */
export const isSealed = (signature: string): boolean => signature.startsWith(sealPrefix)

/** Returns the id and the encrypted content of a reasoning item; undefined for other signatures. */
export function openReasoning(
  signature: string,
): { readonly id: string; readonly encrypted: string } | undefined {
  if (!isSealed(signature)) return undefined
  const parsed = parseJson(Buffer.from(signature.slice(sealPrefix.length), 'base64url').toString())
  const [id, encrypted] = Array.isArray(parsed) ? parsed : []
  return typeof id === 'string' && typeof encrypted === 'string' && encrypted !== ''
    ? { id, encrypted }
    : undefined
}
