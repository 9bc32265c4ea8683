/**
 * Signatures that vendorD gives with calls of tools and wants back with them. They travel inside the
 * ids of the calls, the only thing that every client sends back. Other providers get the bare ids.
 */
const mark = '__thought__'

/** What vendorD takes in place of a signature for calls that its models have not made. */
export const standInSignature = 'skip_thought_signature_validator'

export function idWithSignature(id: string, signature: string | undefined): string {
  return signature === undefined ? id : `${id}${mark}${signature}`
}

/** The id without the signature in it. */
export function bareId(id: string): string {
  const at = id.indexOf(mark)
  return at < 0 ? id : id.slice(0, at)
}

export function signatureOf(id: string): string | undefined {
  const at = id.indexOf(mark)
  return at < 0 ? undefined : id.slice(at + mark.length)
}
