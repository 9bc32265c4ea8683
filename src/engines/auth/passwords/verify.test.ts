import { describe, expect, it } from 'vitest'
import { verifyPassword } from './verify.ts'

/** Written by `htpasswd -n`, `openssl passwd` and crypt(3) of the GNU C library. */
const written: readonly (readonly [string, string, string])[] = [
  ['apr1 of openssl', 'pw', '$apr1$abcdefgh$5VEbMkemELfbhC5ck.U.z1'],
  ['bcrypt', 'pw', '$2y$05$abcdefghijklmnopqrstuuHIrMEWpUCQe2YqFR3sXwQ75u4od..9q'],
  ['SHA-1', 'password', '{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g='],
  ['crypt', 'pw', 'abzlUXK5ed5rs'],
  ['MD5 crypt', 'pw', '$1$abc$Kb85XxsXB.VXinPhbS4431'],
  ['SHA-256 crypt', 'Hello world!', '$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5'],
  [
    'SHA-256 crypt with rounds',
    'pw',
    '$5$rounds=2000$abc$r4C9Lih6dcIceaeW8uM8dpM5OVHNzfFNLcs08T1Z/J3',
  ],
  [
    'SHA-512 crypt',
    'Hello world!',
    '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1',
  ],
]

describe('verifyPassword', () => {
  it.each(written)('accepts only the right password for %s', (_, password, hash) => {
    expect(verifyPassword(password, hash)).toBe(true)
    expect(verifyPassword(`x${password}`, hash)).toBe(false)
    expect(verifyPassword('', hash)).toBe(false)
  })

  it('accepts no password for an unknown hash', () => {
    expect(verifyPassword('plain', 'plain')).toBe(false)
    expect(verifyPassword('', '')).toBe(false)
  })
})
