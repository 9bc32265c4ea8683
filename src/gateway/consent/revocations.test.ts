import { expect, it } from 'vitest'
import type { GrantRecord } from '../../ground/model/grants.ts'
import type { UserConsentConfig } from '../credentials/config.ts'
import type { IssuedToken, TokenEndpoint } from '../credentials/token-endpoint.ts'
import type { Keyring } from '../sign-in/keyring.ts'
import { revokeNow } from './revocations.ts'
import { askGrantsAt, receiveGrant } from './store.ts'
import { UserGrants } from './user-grants.ts'

it('keeps no name of a user who is erased while the tokens are renewed', async () => {
  const stored = new Map<string, { record: GrantRecord | undefined; version: number }>()
  askGrantsAt(({ id, key, put }) => {
    const found = stored.get(key) ?? { record: undefined, version: 0 }
    if (put === undefined) return receiveGrant({ type: 'grant', id, found })
    if (put.expected !== found.version)
      return receiveGrant({ type: 'grant', id, version: undefined })
    const version = found.version + 1
    stored.set(key, { record: put.record, version })
    receiveGrant({ type: 'grant', id, version })
  })
  const keyring = { seal: (text: string) => text, open: (text: string) => Buffer.from(text) }
  const request = async () => {
    for (const [key, { version }] of stored)
      stored.set(key, { record: undefined, version: version + 1 })
    return { value: 'new', refreshToken: 'newer', expiresIn: 60 }
  }
  const config = { endpoint: {}, redirectURI: '/back', scopes: [], resources: [], defaultMs: 1 }
  const grants = new UserGrants(
    config as unknown as UserConsentConfig,
    { request } as unknown as TokenEndpoint,
    () => keyring as unknown as Keyring,
  )
  const ann = { id: 'digest', name: 'ann' }
  await grants.save(ann, { value: 'old', refreshToken: 'older', expiresIn: 0 } as IssuedToken)
  expect(await grants.find(ann)).toBeUndefined()
  const queued = [...stored].filter(([key]) => key.startsWith('revoking.'))
  expect(queued.map(([, { record }]) => record?.principal)).toEqual([''])
  expect(queued[0]?.[1].record?.sealed).toContain('newer')
})

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
