/** Attacks on sign-ins that the gateway relays to a provider. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { browse, redirect } from '../support/mcp-sign-in.ts'
import {
  audience,
  SignInRequests,
  signInManifests,
  visit,
} from '../support/mcp-sign-in-requests.ts'
import { startOAuthServer } from '../support/oauth-server.ts'

const server = useFixture(() => startMcpItemsServer({ tools: ['who'] }))
const idpA = useFixture(() => startOAuthServer({ kind: 'IdpA' }))
const idpB = useFixture(() => startOAuthServer({ kind: 'IdpB', audience }))
const key = join(useFolder('sluice-sign-in-'), 'key')
writeFileSync(key, randomBytes(32))
const [port, otherPort] = [await freePort(), await freePort()]
for (const one of [port, otherPort]) {
  useGateway(() => ({
    manifests: signInManifests(one, { mcp: server.port, idpA, idpB }),
    // Both gateways have the same key, as replicas have.
    args: ['--session-key-file', key, '--workers', '2'],
  }))
}
const at = new SignInRequests(port)
const refused = (text: string) => ({
  status: 400,
  location: undefined,
  text: expect.stringContaining(text),
})

const evil = 'https://evil.example.com/steal'

it('an attacker cannot have a user sent to a redirect URI that the client has not registered [CVE-2026-27124]', async () => {
  const client_id = await at.newClient('/b', redirect)
  const uris = [
    evil,
    `${redirect}/..`,
    `${redirect}?x`,
    'http://127.0.0.1:1@evil.example.com/callback',
  ]
  for (const redirect_uri of uris) {
    const found = await visit(at.authorization('/b', { client_id, redirect_uri }))
    expect(found).toMatchObject({ status: 400, location: undefined })
  }
  expect(await visit(at.authorization('/b', { client_id: 'unknown' }))).toMatchObject({
    status: 400,
  })
})

it('an attacker cannot use a response mode, response type or request object that evades the callback', async () => {
  const client_id = await at.newClient('/b', redirect)
  for (const fields of [
    { response_mode: 'fragment' },
    { response_mode: 'form_post' },
    { response_type: 'token' },
    { response_type: 'code id_token' },
    { request: 'x.y.z' },
    { request_uri: 'urn:x' },
  ] as Record<string, string>[]) {
    const found = await visit(at.authorization('/b', { client_id, ...fields }))
    expect(found).toMatchObject({ status: 400, location: undefined })
  }
  const twice = `${at.authorization('/b', { client_id })}&redirect_uri=${encodeURIComponent(evil)}`
  expect(await visit(twice)).toEqual(refused('redirect_uri is repeated'))
})

it('an attacker cannot change, invent or move a state', async () => {
  const client_id = await at.newClient('/b', redirect)
  const callback = await at.callback('/b', { client_id })
  const state = callback.searchParams.get('state') ?? ''
  const middle = Math.floor(state.length / 2)
  const changed = `${state.slice(0, middle)}${state[middle] === 'A' ? 'B' : 'A'}${state.slice(middle + 1)}`
  for (const other of [changed, '', 'of the client', `${state}=`, state.slice(0, -2)]) {
    const forged = new URL(callback)
    forged.searchParams.set('state', other)
    expect(await visit(forged.href)).toEqual(refused('the state is not valid'))
  }
  const elsewhere = [
    callback.href.replace('/oauth-authorization-server/b/', '/oauth-authorization-server/other/'),
    callback.href.replace(`:${port}/`, `:${otherPort}/`),
  ]
  for (const url of elsewhere) expect(await visit(url)).toEqual(refused('the state is not valid'))
  expect(await visit(`${callback.href}&state=${state}`)).toEqual(refused('state is repeated'))
  expect((await visit(callback.href)).status).toBe(302)
})

it('an attacker cannot have the code for one client returned to another one', async () => {
  const own = await at.newClient('/b', evil)
  const state = (await at.callback('/b', { client_id: own, redirect_uri: evil })).searchParams.get(
    'state',
  )
  const victim = await at.newClient('/b', redirect)
  const callback = await at.callback('/b', { client_id: victim })
  callback.searchParams.set('state', state ?? '')
  expect(await visit(callback.href)).toEqual(refused('the state is not valid'))
})

it('an attacker cannot mix up issuers', async () => {
  const client_id = await at.newClient('/b', redirect)
  const callback = await at.callback('/b', { client_id })
  for (const iss of [idpA.issuer, `${idpB.issuer}/`, at.url('/b'), '']) {
    const mixed = new URL(callback)
    mixed.searchParams.set('iss', iss)
    expect(await visit(mixed.href)).toEqual(refused('the response is of another issuer'))
  }
  callback.searchParams.delete('iss')
  const { location = '' } = await visit(callback.href)
  expect(new URL(location).searchParams.get('iss')).toBe(at.url('/b'))
})

it('an attacker cannot redeem a code without the verifier, or with another redirect URI', async () => {
  const client_id = await at.newClient('/b', redirect, evil)
  for (const change of [{ code_verifier: 'x'.repeat(43) }, { redirect_uri: evil }] as Record<
    string,
    string
  >[]) {
    const { searchParams } = await browse(at.authorization('/b', { client_id }))
    const fields = { client_id, redirect_uri: redirect, code: searchParams.get('code') ?? '' }
    expect((await at.token('/b', { ...fields, ...change })).status).toBe(400)
  }
})

it('an attacker cannot send large or repeated fields', async () => {
  const large = await at.token('/b', { code: 'x'.repeat(70_000) })
  expect(large.status).toBe(413)
  const client_id = await at.newClient('/b', redirect)
  const long = await visit(at.authorization('/b', { client_id, state: 'x'.repeat(6_000) }))
  expect(long).toEqual(refused('too long'))
  const body = `redirect_uri=${encodeURIComponent(redirect)}&redirect_uri=${encodeURIComponent(evil)}`
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const repeated = await fetch(`${at.metadataUrl('/b')}/client-token`, {
    method: 'POST',
    headers,
    body,
  })
  expect(repeated.status).toBe(400)
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
  expect((await fetch(`${at.metadataUrl('/b')}/client-token`, json)).status).toBe(400)
})
