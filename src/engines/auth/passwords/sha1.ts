import { hash as digestOf, timingSafeEqual } from 'node:crypto'

/** Compares two texts in constant time. */
export function isSameText(a: string, b: string): boolean {
  const left = Buffer.from(a)
  const right = Buffer.from(b)
  return left.length === right.length && timingSafeEqual(left, right)
}

/** Verifies a `{SHA}` hash of htpasswd: SHA-1 in base64, without salt. */
export function verifySha1(password: string, hash: string): boolean {
  return isSameText(`{SHA}${digestOf('sha1', Buffer.from(password), 'base64')}`, hash)
}
