/** Versions that say nothing but what they are of. */
import { hash } from 'node:crypto'
import { canonicalJson } from './canonical.ts'

/** First 128 bits of the SHA-256 of the canonical JSON, in hex: equal content, equal version. */
export function contentVersion(value: unknown): string {
  return hash('sha256', canonicalJson(value)).slice(0, 32)
}
