import { hash as digestOf, timingSafeEqual } from 'node:crypto'

/** Are two texts the same? Takes as long for a near miss as for a far one. */
export function isSameText(a: string, b: string): boolean {
  const left = Buffer.from(a)
  const right = Buffer.from(b)
  return left.length === right.length && timingSafeEqual(left, right)
}

/** A `{SHA}` hash of htpasswd: SHA-1 in base 64, without salt. */
export function verifySha1(password: string, hash: string): boolean {
  return isSameText(`{SHA}${digestOf('sha1', Buffer.from(password), 'base64')}`, hash)
}
