import { canonicalBytes } from '../../ground/base/canonical.ts'
import { hexDigest } from '../../ground/base/digest.ts'

/**
 * Equal content gives equal versions: the first 128 bits of the SHA-256 of the canonical JSON, in hex. Versions stay in
 * memory: `join` makes a string of 32 bytes, while a slice would keep the whole digest.
 */
export function contentVersion(value: unknown): string {
  const digest = hexDigest('sha256', canonicalBytes(value))
  return [digest.slice(0, 16), digest.slice(16, 32)].join('')
}
