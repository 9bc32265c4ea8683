/**
 * Signatures that vendor D sends with tool calls and requires back. They are appended to the ids of
 * calls, which every client sends back. Other providers get the ids without signatures.
 */
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
