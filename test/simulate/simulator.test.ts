/** What the simulator decides about requests, through manifests and the real fold. */
import { describe, expect, it } from 'vitest'
import { policy, routeByHost, secret, staticBackend, toBackend } from '../support/manifests.ts'
import { fields, recorded, simulate } from './simulator-rig.ts'

const base = [staticBackend('web', 9), routeByHost('app', toBackend('web'))]
const onRoute = (traffic: Readonly<Record<string, unknown>>) => [
  ...base,
  policy('p', 'HTTPRoute/app', { traffic }),
]

describe('routing', () => {
  it('forwards a request to the backend of its rule', async () => {
    const { outcome, undecided, steps } = await simulate(base)
    expect(outcome).toMatchObject({
      verdict: 'forward',
      gateway: 'default/edge',
      listener: 'http',
      route: 'HTTPRoute default/app',
      rule: 0,
      backend: 'default/web',
    })
    expect(undecided).toEqual([])
    expect(steps).toEqual([])
  })

  it('answers 404 if no route matches', async () => {
    const { outcome } = await simulate(base, { host: 'other.example.com' })
    expect(outcome).toMatchObject({ verdict: 'answer', status: 404 })
    expect(outcome.reason).toContain('route_not_found')
  })
})

describe('authorization', () => {
  const rule = (expression: string) =>
    onRoute({ authorization: { policy: { matchExpressions: [expression] } } })
  const byTeam = rule('request.headers["x-team"] == "a"')

  it('computes the verdict of a rule over known headers', async () => {
    const allowed = await simulate(byTeam, { headers: fields({ 'X-Team': 'a' }) })
    expect(allowed.outcome.verdict).toBe('forward')
    expect(allowed.steps).toMatchObject([
      { step: 'traffic.authorization', verdict: 'pass', basis: 'computed' },
    ])
    expect(allowed.steps[0]?.from).toEqual([{ object: 'GatewayPolicy default/p' }])
    const denied = await simulate(byTeam, { headers: fields({ 'x-team': 'b' }) })
    expect(denied.outcome).toMatchObject({ verdict: 'answer', status: 403 })
  })

  it('is undecided if the header is known by its digest only', async () => {
    const headers = [{ name: 'x-team', digest: '00' }]
    const { outcome, undecided } = await simulate(byTeam, { headers })
    expect(outcome.verdict).toBe('undecided')
    expect(undecided).toEqual(['traffic.authorization: the value of header x-team is not recorded'])
  })

  it('takes the recorded verdict if the policy is unchanged', async () => {
    const [step] = (await simulate(byTeam)).steps
    const headers = [{ name: 'x-team', digest: '00' }]
    const config = step?.config ?? ''
    const record = (verdict: 'pass' | 'answer', response = {}) =>
      recorded([{ step: 'traffic.authorization', config, verdict }], {
        request: { headers },
        response,
      })
    expect((await simulate(byTeam, record('pass'))).steps).toMatchObject([
      { verdict: 'pass', basis: 'recorded' },
    ])
    const refused = await simulate(
      byTeam,
      record('answer', { status: 403, reason: 'Authorization' }),
    )
    expect(refused.outcome).toMatchObject({ verdict: 'answer', status: 403 })
    const changed = await simulate(rule('request.headers["x-team"] == "b"'), record('pass'))
    expect(changed.outcome.verdict).toBe('undecided')
  })
})

describe('API keys', () => {
  const keys = [
    ...onRoute({ apiKeyAuthentication: { secretRef: { name: 'keys' } } }),
    secret('keys', { alice: 'k-alice' }),
  ]
  const withKey = { headers: fields({ authorization: 'Bearer k-alice' }) }

  it('checks keys of manifests', async () => {
    expect((await simulate(keys, withKey)).outcome.verdict).toBe('forward')
    const wrong = { headers: fields({ authorization: 'Bearer no' }) }
    expect((await simulate(keys, wrong)).outcome).toMatchObject({ verdict: 'answer', status: 401 })
  })

  it('is undecided without the values of Secrets', async () => {
    const { undecided } = await simulate(keys, withKey, { isLog: true })
    expect(undecided).toEqual([
      'traffic.apiKeyAuthentication: it uses a Secret whose value is not known here',
    ])
  })
})

describe('external authorization', () => {
  const asked = [
    ...onRoute({ extAuth: { backendRef: toBackend('auth'), http: {} } }),
    staticBackend('auth', 9),
  ]

  it('is undecided, unless the verdict is assumed', async () => {
    expect((await simulate(asked)).undecided).toEqual(['traffic.extAuth: it calls another service'])
    const pass = await simulate(asked, {}, { assumed: new Map([['traffic.extAuth', 'pass']]) })
    expect(pass.outcome.verdict).toBe('forward')
    expect(pass.steps).toMatchObject([{ verdict: 'pass', basis: 'assumed' }])
    const refused = await simulate(asked, {}, { assumed: new Map([['traffic.extAuth', 403]]) })
    expect(refused.outcome).toMatchObject({ verdict: 'answer', status: 403 })
  })
})
