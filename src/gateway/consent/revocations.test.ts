import { expect, it } from 'vitest'
import type { GrantRecord } from '../../ground/model/grants.ts'
import { revokeNow } from './revocations.ts'
import { askGrantsAt, receiveGrant } from './store.ts'
import type { UserGrants } from './user-grants.ts'

it('keeps no name of a user who is erased while the tokens are revoked', async () => {
  const revocation = { at: Date.now(), attempts: 0, nextAt: 0 }
  const removed = { service: 's', client: 'c', sealed: 'x', createdAt: 0, renewingUntil: 0 }
  const stored = new Map<string, GrantRecord>([
    ['revoking.k.1', { ...removed, principal: 'ann', revocation }],
  ])
  askGrantsAt(({ id, key, put, remove }) => {
    if (put?.record !== undefined) stored.set(key, put.record)
    if (remove === true) stored.delete(key)
    receiveGrant({ type: 'grant', id, found: { record: stored.get(key), version: 1 }, version: 2 })
  })
  const revokeTokens = async () => {
    const record = stored.get('revoking.k.1')
    if (record !== undefined) stored.set('revoking.k.1', { ...record, principal: '' })
    return true
  }
  const grants = { keyring: () => ({}), revokeTokens } as unknown as UserGrants
  await revokeNow(grants, 'revoking.k.1')
  expect([...stored.keys()]).toEqual(['revoked.k.1'])
  expect(stored.get('revoked.k.1')).toMatchObject({
    principal: '',
    revocation: { outcome: 'revoked' },
  })
})
