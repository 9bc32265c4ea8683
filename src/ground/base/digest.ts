/** Digests of texts and bytes by Node. Bundles for browsers have `digest-browser.ts` in place of this file. */
import { hash } from 'node:crypto'

type Content = string | Uint8Array

/** The digest in hex. Texts are hashed as UTF-8. */
export const hexDigest = (algorithm: 'md5' | 'sha1' | 'sha256', content: Content): string =>
  hash(algorithm, content)

/** The SHA-256 as bytes. */
export const sha256 = (content: Content): Uint8Array => hash('sha256', content, 'buffer')
