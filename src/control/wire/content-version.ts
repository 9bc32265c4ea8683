import { canonicalBytes } from '../../ground/base/canonical.ts'
import { hexDigest } from '../../ground/base/digest.ts'

/** Equal content gives equal versions: the first 128 bits of the SHA-256 of the canonical JSON, in hex. */
export function contentVersion(value: unknown): string {
  return hexDigest('sha256', canonicalBytes(value)).slice(0, 32)
}
