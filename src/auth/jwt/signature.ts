import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { Algorithm, PublicJwk } from './key-set.ts'

/** A key ready to verify with; undefined where its numbers make no key. */
export function importKey(jwk: PublicJwk): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...jwk }, format: 'jwk' })
  } catch {
    return undefined
  }
}

/** Signatures as RFC 7518 section 3 and RFC 8037 have them. */
export function isSignedBy(
  key: KeyObject,
  algorithm: Algorithm,
  signed: Buffer,
  signature: Buffer,
): boolean {
  if (algorithm === 'EdDSA') return verify(null, signed, key, signature)
  const digest = `sha${algorithm.slice(2)}`
  switch (algorithm.slice(0, 2)) {
    case 'RS':
      return verify(digest, signed, key, signature)
    case 'PS': {
      const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
      const padding = constants.RSA_PKCS1_PSS_PADDING
      return verify(digest, signed, { key, padding, saltLength }, signature)
    }
    default:
      return verify(digest, signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
  }
}
