/** Grants of users that end: by their users, by commands, and by erasures; and grants that are bound to a key. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, jwtVerify } from 'jose'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { inSeconds, sign } from '../support/identity-provider.ts'
import { manifest } from '../support/manifests.ts'
import { Browser } from '../support/sign-in-browser.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  authorizationOf,
  browserOf,
  host,
  manifestsFor,
  pageOf,
  people,
  programsAt,
  sealingKeys,
  service,
  tokenOf,
} from './user-consent-rig.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 })

const port = await freePort()
const running = useGateway(() => ({
  args: ['--workers', '2'],
  manifests: {
    'all.yaml': manifestsFor(port),
    'keys.yaml': manifest(sealingKeys({ '2026-01': 'a'.repeat(40) })),
  },
}))

beforeEach(() => {
  people.reset()
  service.reset()
})

const { call, allowed } = programsAt(port)
const grants = async (...args: string[]) => sluice('grants', ...args, '--log-file', running.logFile)
const two = (text: string) => [text, text]

describe('a token that is bound to a key', () => {
  it('is sent with proofs of this key by all workers, also after its renewal', async () => {
    const thumbprint = (proof: string) =>
      calculateJwkThumbprint(decodeProtectedHeader(proof).jwk ?? { kty: 'none' })
    service.behaviour.expiresIn = 1
    await allowed('tom', '/bound')
    const due = Date.now() + 1_100
    await waitFor('the end of the token', () => Date.now() > due)
    service.behaviour.expiresIn = 600
    const answers = await Promise.all(Array.from({ length: 8 }, () => call('tom', '/bound')))
    const [atCode = '', ...atRefresh] = service.proofs
    const key = await thumbprint(atCode)
    expect(await Promise.all(atRefresh.map(thumbprint))).toEqual([key])
    for (const { body } of answers) {
      const { headers } = JSON.parse(body) as { headers: Record<string, string> }
      const { dpop = '', authorization = '' } = headers
      expect(authorization).toMatch(/^DPoP access-tom-/)
      const { payload } = await jwtVerify(dpop, EmbeddedJWK, { typ: 'dpop+jwt' })
      const ath = createHash('sha256').update(authorization.slice(5)).digest('base64url')
      expect([await thumbprint(dpop), payload.ath]).toEqual([key, ath])
    }
  })
})

describe('a removed grant', () => {
  const outcomes = async () => {
    const { stdout } = await grants('list', '--revoked', '-o', 'json')
    return JSON.parse(stdout) as { principal: string; tokens: string; attempts: number }[]
  }
  const outcomeOf = (user: string) =>
    waitFor(`the outcome for ${user}`, async () =>
      (await outcomes()).find(
        ({ principal, tokens }) => principal.endsWith(`#${user}`) && tokens !== 'pending',
      ),
    )

  it('is revoked at the service, again after a failure, and the outcome is listed', async () => {
    service.behaviour.revocationFailures = [[503, 'temporarily_unavailable']]
    await allowed('pia')
    const sent = authorizationOf((await call('pia')).body)
    const { stdout } = await grants('revoke', '--principal', `${people.issuer}#pia`)
    expect(stdout).toContain('a gateway revokes the tokens at the service')
    // The grant is gone although the revocation failed.
    await waitFor('the end of the grant', async () => (await call('pia')).status === 401)
    expect(await outcomeOf('pia')).toMatchObject({ tokens: 'revoked', attempts: 2 })
    // A failure for one token does not keep the other one from being revoked.
    const types = service.revocations.map(({ type }) => type)
    expect(types.sort()).toEqual([...two('access_token'), ...two('refresh_token')])
    const access = service.revocations.find(({ type }) => type === 'access_token')
    expect(`Bearer ${access?.token}`).toBe(sent)
    expect(access?.client).toMatch(/^Basic /)
  })

  it('is not used any more after its user removed it, which forms of other sites cannot do', async () => {
    await allowed('quin')
    const browser = await browserOf('quin', port)
    const address = pageOf(port, 'service')
    expect((await browser.open(address)).body).toContain('have access to your account')
    const remove = (site: string) =>
      browser.open(`${address}?remove`, { method: 'POST', headers: { 'sec-fetch-site': site } })
    expect((await remove('cross-site')).status).toBe(403)
    expect((await call('quin')).status).toBe(200)
    service.behaviour.revocationFailures = [
      [400, 'unsupported_token_type'],
      [400, 'unsupported_token_type'],
    ]
    expect((await remove('same-origin')).body).toContain('Access removed')
    await waitFor('the end of the grant', async () => (await call('quin')).status === 401)
    expect((await browser.open(address)).body).toContain('have no access')
    expect(await outcomeOf('quin')).toMatchObject({ tokens: 'unsupported', attempts: 1 })
    expect(service.revocations).toHaveLength(2)
  })
})

describe('the erasure of a user', () => {
  it('ends browser sessions, tokens and grants, and keeps no name of the user', async () => {
    await allowed('rae')
    await allowed('sam')
    const browsers = { rae: await browserOf('rae', port), sam: await browserOf('sam', port) }
    const statusOf = async (user: 'rae' | 'sam') =>
      (await browsers[user].fetch(`http://${host}:${port}/`)).status
    expect([await statusOf('rae'), (await call('rae')).status]).toEqual([200, 200])
    const old = { headers: { authorization: `Bearer ${await tokenOf('rae')}` } }
    const where = ['--log-file', running.logFile]
    const erase = ['--account', 'rae', '--issuer', people.issuer, '--reason', 'asked for']
    const { code, stdout } = await sluice('budgets', 'erase', ...erase, ...where)
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^ended: .*; 1 grants at other services were removed\n.*no ledger/),
    ])
    await waitFor('the end of the session', async () => (await statusOf('rae')) === 401)
    // The old token does not even get a link.
    await waitFor('the end of the token', async () => {
      const { status, headers } = await new Browser().send(`http://api.localhost:${port}/`, old)
      return status === 401 && `${headers['www-authenticate']}`.includes('invalid_token')
    })
    expect([await statusOf('sam'), (await call('sam')).status]).toEqual([200, 200])
    await waitFor('the revocation at the service', () => service.revocations.length === 2)
    const { stdout: list } = await grants('list', '--revoked', '-o', 'json')
    expect(JSON.parse(list)).toContainEqual(expect.objectContaining({ principal: '' }))
    const later = await sign(people.key, { iss: people.issuer, sub: 'rae', iat: inSeconds(30) })
    const headers = { authorization: `Bearer ${later}` }
    // Every worker stops using the grant within 5 s.
    await waitFor('the end of the grant', async () => {
      const again = await new Browser().send(`http://api.localhost:${port}/`, { headers })
      return again.status === 401 && again.body.includes('consent_required')
    })
    const stored = readFileSync(`${running.logFile}.grants`, 'latin1')
    expect([stored.includes('#sam'), stored.includes('#rae')]).toEqual([true, false])
  })
})
