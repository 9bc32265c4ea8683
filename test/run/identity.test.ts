/** Who a request belongs to: in logs, records, metrics and later expressions. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, manifest, policy, routeByPath, secret } from '../support/manifests.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-identity-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const catalog = join(folder, 'catalog.json')
const entry = { rates: { input: '1', output: '1' } }
writeFileSync(catalog, JSON.stringify({ providers: { openai: { models: { 'm-1': entry } } } }))

const keyOf = (key: string, team: string) => JSON.stringify({ key, metadata: { team } })
const routes = { '/v1/chat/completions': 'Completions' }
const port = await freePort()
const stats = `127.0.0.1:${await freePort()}`
const records = join(folder, 'records')
const a = useFixture(startVendorA)
const running = useGateway(() => {
  const provider = { vendorA: {}, host: '127.0.0.1', port: a.port }
  const reached = (name: string, traffic?: object) => [
    aiBackend(name, { provider }, { ai: { routes } }),
    routeByPath(name),
    ...(traffic === undefined ? [] : [policy(name, `HTTPRoute/${name}`, { traffic })]),
  ]
  const keys = { apiKeyAuthentication: { secretRef: { name: 'keys' } } }
  return {
    args: [
      ...['--access-log', 'json', '--stats-address', stats, '--model-catalog', catalog],
      ...['--record', 'all', '--record-dir', records],
    ],
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        secret('keys', { ann: keyOf('key-of-ann', 'red'), bob: keyOf('key-of-bob', 'blue') }),
        ...reached('keyed', keys),
        ...reached('open'),
        ...reached('teams', {
          ...keys,
          identity: {
            dimensions: {
              team: 'apiKey.team',
              user: 'identity.principal',
              tenant: 'jwt.tenant',
              project: 'request.headers["x-project"]',
            },
          },
          authorization: {
            action: 'Allow',
            policy: { matchExpressions: ['identity.team == "red"'] },
          },
        }),
        ...reached('many', { identity: { dimensions: { caller: 'request.headers["x-caller"]' } } }),
      ),
    },
  }
})

const body = JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content: 'Hello' }] })

async function ask(name: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/${name}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body,
  })
  await response.arrayBuffer()
  return response.status
}

type Line = Readonly<Record<string, unknown>>

async function lineOf(name: string, headers: Record<string, string> = {}): Promise<Line> {
  const from = running.stdout.length
  await ask(name, headers)
  const text = await waitFor('the line', () => {
    const lines = running.stdout.slice(from).split('\n').slice(0, -1)
    return lines.find((line) => line.includes('"scope":"request"'))
  })
  return JSON.parse(text) as Line
}

const identityIn = (line: Line) =>
  Object.fromEntries(Object.entries(line).filter(([name]) => name.startsWith('identity.')))

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const metrics = async () => (await fetch(`http://${stats}/metrics`)).text()

describe('the identity of a request', () => {
  it('is the id of its API key if no policy says otherwise', async () => {
    expect(identityIn(await lineOf('keyed', bearer('key-of-ann')))).toEqual({
      'identity.principal': 'ann',
    })
    expect(identityIn(await lineOf('open'))).toEqual({})
  })

  it('has the dimensions of the policy that have a value, and later policies can use it', async () => {
    const line = await lineOf('teams', { ...bearer('key-of-ann'), 'x-project': 'apollo' })
    expect(line['http.status']).toBe(200)
    expect(identityIn(line)).toEqual({
      'identity.team': 'red',
      'identity.user': 'ann',
      'identity.project': 'apollo',
    })
    const refused = await lineOf('teams', bearer('key-of-bob'))
    expect(refused['http.status']).toBe(403)
    expect(identityIn(refused)).toEqual({ 'identity.team': 'blue', 'identity.user': 'bob' })
  })

  it('keeps long values apart by their digests', async () => {
    const long = 'x'.repeat(300)
    const one = await lineOf('many', { 'x-caller': `${long}1` })
    const other = await lineOf('many', { 'x-caller': `${long}2` })
    expect(one['identity.caller']).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(other['identity.caller']).not.toBe(one['identity.caller'])
  })

  it('is recorded with the decision', async () => {
    await ask('teams', bearer('key-of-ann'))
    await waitFor('the record', () =>
      [...recordsIn(records).values()].some(
        ({ details }) => details['identity.team'] === 'red' && details['cost.total'] === '0.000018',
      ),
    )
  })

  it('labels metrics of costs, whose values are bounded', async () => {
    await Promise.all(
      Array.from({ length: 20 }, async (_, part) => {
        for (let at = 0; at < 30; at++) await ask('many', { 'x-caller': `c-${part}-${at}` })
      }),
    )
    const name = 'sluice_identity_model_cost_usd_total'
    const lines = await waitFor('the overflow', async () => {
      const found = (await metrics()).split('\n').filter((line) => line.startsWith(`${name}{`))
      return found.some((line) => line.includes('value="_OTHER"')) ? found : undefined
    })
    const callers = lines.filter((line) => line.includes('dimension="caller"'))
    expect(callers.length).toBeLessThanOrEqual(501 * 4)
    const sum = callers.reduce((all, line) => all + Number(line.split(' ').at(-1)), 0)
    expect(sum).toBeCloseTo(602 * 18e-6, 9)
    expect(lines.some((line) => line.includes('dimension="team",value="red"'))).toBe(true)
    expect(lines.some((line) => line.includes('dimension="principal",value="none"'))).toBe(true)
  })
})
