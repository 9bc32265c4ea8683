/** Digests of texts and bytes in browsers, whose own hashing is asynchronous. */
import { md5, sha1 } from '@noble/hashes/legacy.js'
import { sha256 as sha256OfBytes } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'

type Content = string | Uint8Array

const algorithms = { md5, sha1, sha256: sha256OfBytes }
const utf8 = new TextEncoder()
const bytesOf = (content: Content) => (typeof content === 'string' ? utf8.encode(content) : content)

export const hexDigest = (algorithm: keyof typeof algorithms, content: Content): string =>
  bytesToHex(algorithms[algorithm](bytesOf(content)))

export const sha256 = (content: Content): Uint8Array => sha256OfBytes(bytesOf(content))
