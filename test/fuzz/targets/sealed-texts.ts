import assert from 'node:assert/strict'
import { SignInSeal } from '../../../src/gateway/backends/mcp/auth/sign-in-state.ts'
import { openTicket, sealTicket } from '../../../src/gateway/consent/tickets.ts'
import type { UserGrants } from '../../../src/gateway/consent/user-grants.ts'
import { Keyring } from '../../../src/gateway/sign-in/keyring.ts'
import { defineTarget } from '../support/target.ts'

const secret = Buffer.alloc(32, 1)
const keyring = new Keyring([secret, Buffer.alloc(32, 2)])
const grantsOf = (id: string) => ({ id, keyring: () => keyring }) as UserGrants
const grants = grantsOf('service')
const ticket = { owner: 'ann', verifier: 'v'.repeat(43) }
const link = sealTicket(grants, 'link', ticket) ?? ''
const state = sealTicket(grants, 'state', ticket) ?? ''

const seal = new SignInSeal()
const signIn = { redirect: 'http://127.0.0.1/callback', state: 'of the client', expiresAt: 1 }
const relayed = seal.seal(signIn, secret, 'route')

export default defineTarget({
  about:
    'only the sealed text opens as a link, a state or a sign-in, and only for its kind, service or route',
  samples: [link, state, relayed, `${link}.`, link.slice(0, -1), `${relayed}=`],
  words: ['.', '-', '_', '=', 'A', link.slice(0, 7), state.slice(7, 40), relayed.slice(0, 20)],
  start: () => ({
    check(input) {
      const text = input.toString('latin1')
      for (const [kind, own] of [
        ['link', link],
        ['state', state],
      ] as const) {
        // A ticket is valid for ten minutes, and a run may take longer.
        const opened = openTicket(grants, kind, text)
        if (opened !== undefined) {
          assert.equal(text, own)
          assert.deepEqual({ ...opened, at: 0 }, { ...ticket, at: 0 })
        }
        assert.equal(openTicket(grantsOf('other'), kind, text), undefined)
      }
      const opened = seal.open(text, secret, 'route')
      assert.equal(opened !== undefined, text === relayed)
      if (opened !== undefined) assert.deepEqual(opened, signIn)
      assert.equal(seal.open(text, secret, 'other'), undefined)
    },
  }),
})
