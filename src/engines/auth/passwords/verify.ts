/** Verifies passwords against every hash format that htpasswd and `openssl passwd` write. */
import { compareSync } from 'bcryptjs'
import { desCrypt } from './des-crypt.ts'
import { passwordHashKind } from './htpasswd.ts'
import { md5Crypt } from './md5-crypt.ts'
import { shaCryptDigits } from './sha-crypt.ts'
import { isSameText, verifySha1 } from './sha1.ts'

/**
 * Returns whether the password matches the hash; compares in constant time. Takes a millisecond to a
 * second of CPU time, except for SHA-1. A hash of an unknown format matches no password.
 */
export function verifyPassword(password: string, hash: string): boolean {
  const bytes = Buffer.from(password)
  switch (passwordHashKind(hash)) {
    case 'sha1':
      return verifySha1(password, hash)
    case 'apr1':
      return isSameText(md5Crypt(bytes, hash.split('$')[2] ?? '', 'apr1'), hash)
    case 'bcrypt':
      return compareSync(password, hash)
    case 'crypt':
      return isSameText(crypt(bytes, hash), hash)
    case undefined:
      return false
  }
}

/** Hashes a password with crypt(3); the prefix of the given hash selects the format and the salt. */
function crypt(password: Buffer, hash: string): string {
  if (!hash.startsWith('$')) return desCrypt(password, hash.slice(0, 2))
  if (hash.startsWith('$1$')) return md5Crypt(password, hash.split('$')[2] ?? '', '1')
  return shaCrypt(password, hash)
}

const defaultRounds = 5000

function shaCrypt(password: Buffer, hash: string): string {
  const [, prefix, second = '', third = ''] = hash.split('$')
  const rounds = /^rounds=(\d+)$/.exec(second)?.[1]
  const salt = rounds === undefined ? second : third
  const count = Number(rounds ?? defaultRounds)
  const digits = shaCryptDigits(password, salt, prefix === '5' ? '5' : '6', count)
  return hash.slice(0, hash.length - digits.length) + digits
}
