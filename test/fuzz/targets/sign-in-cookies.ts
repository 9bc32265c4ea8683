import assert from 'node:assert/strict'
import {
  joinPieces,
  readCookies,
  reservedPrefix,
  setPieces,
} from '../../../src/gateway/sign-in/cookies.ts'
import { Keyring } from '../../../src/gateway/sign-in/keyring.ts'
import { safeReturnPath } from '../../../src/gateway/sign-in/navigation.ts'
import { OpenedSessions } from '../../../src/gateway/sign-in/opened-sessions.ts'
import { sealSession } from '../../../src/gateway/sign-in/session.ts'
import { defineTarget } from '../support/target.ts'

const name = `${reservedPrefix}s-0123456789`
const context = 'policy'
const keyring = new Keyring([Buffer.alloc(32, 1), Buffer.alloc(32, 2)])
const session = {
  id: 'a',
  startedAt: 0,
  issuedAt: 0,
  renewedAt: 0,
  expiresAt: 1,
  claims: { sub: 'ann' },
  accessToken: Array.from({ length: 900 }, (_, at) =>
    ((at * 2_654_435_761) % 97).toString(36),
  ).join(''),
}
const cookiesOf = (value: string) =>
  setPieces(name, value, 1, readCookies(''))
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ')
const sealed = sealSession(session, keyring, context)
const line = `theme=dark; ${cookiesOf(sealed)}`

export default defineTarget({
  about:
    'only the sealed text opens as a session, other cookies stay, and return paths stay on the host',
  samples: [
    line,
    `${name}=1.x`,
    `${name}=2.${sealed.slice(0, 50)}; ${name}.1=${sealed.slice(50)}`,
    '//a.example',
    '/\\a.example',
    '/%2f%2fa.example?b=c',
  ],
  words: [name, `${name}.1`, `${name}.9`, '=', ';', '; ', '.', '0.', '1.', '9.', '\t', '\\', '%2f'],
  start: () => {
    const opened = new OpenedSessions(name, context)
    return {
      check(input) {
        const text = input.toString('latin1')
        const cookies = readCookies(text)
        assert(!cookies.others.includes(`; ${reservedPrefix}`))
        assert(!cookies.others.startsWith(reservedPrefix))
        const found = opened.find(text, keyring)
        if (found !== undefined) {
          assert.equal(joinPieces(cookies, name), sealed)
          assert.deepEqual(found.session, session)
        }
        const value = text.replace(/[^\w-]/g, '')
        if (value.length < 18_000) {
          assert.equal(joinPieces(readCookies(cookiesOf(value)), name), value)
        }
        const path = safeReturnPath(text)
        assert.equal(new URL(path, 'https://host.example').origin, 'https://host.example')
      },
    }
  },
})
