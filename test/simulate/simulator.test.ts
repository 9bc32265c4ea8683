/** What the simulator decides about requests, through manifests and the real fold. */
import { describe, expect, it } from 'vitest'
import { FieldDigests } from '../../src/engines/core/field-digests.ts'
import { createIoCore } from '../../src/engines/core/index.ts'
import { keySetOf, signingKey } from '../support/identity-provider.ts'
import { policy, routeByHost, secret, staticBackend, toBackend } from '../support/manifests.ts'
import { aRequest, fields, recorded, simulate, simulatorOf } from './simulator-rig.ts'

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

describe('a step with unknown inputs after a changed step', () => {
  it('does not take its recorded verdict', async () => {
    const asked = { extAuth: { backendRef: toBackend('auth'), http: {} } }
    const transformation = { request: { set: [{ name: 'x-a', value: '"1"' }] } }
    const before = [...onRoute(asked), staticBackend('auth', 9)]
    const after = [
      ...before,
      policy('early', 'Gateway/edge', { traffic: { phase: 'PreRouting', transformation } }),
    ]
    const [step] = (await simulate(before)).steps
    const steps = [
      { step: 'traffic.extAuth', config: step?.config ?? '', verdict: 'pass' as const },
    ]
    expect((await simulate(before, recorded(steps))).outcome.verdict).toBe('forward')
    expect((await simulate(after, recorded(steps))).undecided).toEqual([
      'traffic.extAuth: it calls another service',
    ])
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
    expect(undecided).toEqual(['traffic.apiKeyAuthentication: the value of its Secret is unknown'])
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

describe('other authentication', () => {
  it('checks passwords of manifests', async () => {
    const users = ['ann:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=']
    const basic = onRoute({ basicAuthentication: { users } })
    const asks = async (text: string) => {
      const authorization = `Basic ${Buffer.from(text).toString('base64')}`
      return (await simulate(basic, { headers: fields({ authorization }) })).outcome
    }
    expect(await asks('ann:pw')).toMatchObject({ verdict: 'forward' })
    expect(await asks('ann:no')).toMatchObject({ verdict: 'answer', status: 401 })
  })

  it('is undecided about a token if the keys have not been fetched', async () => {
    const jwks = {
      remote: { backendRef: toBackend('idp'), jwksPath: '/keys' },
    }
    const objects = [
      staticBackend('idp', 9),
      ...onRoute({ jwtAuthentication: { providers: [{ issuer: 'https://idp', jwks }] } }),
    ]
    const token = { headers: fields({ authorization: 'Bearer a.b.c' }) }
    expect((await simulate(objects, token)).undecided).toEqual([
      'traffic.jwtAuthentication: the keys of its token provider were not fetched',
    ])
    expect((await simulate(objects)).outcome).toMatchObject({ verdict: 'answer', status: 401 })
  })

  it('does not know the claims of a recorded token', async () => {
    const token = [{ name: 'authorization' }]
    const keySet = JSON.stringify(keySetOf(await signingKey('one')))
    const objects = onRoute({
      jwtAuthentication: {
        providers: [{ issuer: 'https://idp', jwks: { inline: keySet } }],
      },
      authorization: { policy: { matchExpressions: ['jwt.sub == "ann"'] } },
    })
    const [step] = (await simulate(objects, { headers: token })).steps
    const steps = [
      { step: 'traffic.jwtAuthentication', config: step?.config ?? '', verdict: 'pass' as const },
    ]
    const { undecided } = await simulate(objects, recorded(steps, { request: { headers: token } }))
    expect(undecided).toEqual([
      'traffic.authorization: traffic.jwtAuthentication may have changed it',
    ])
  })
})

describe('CORS and CSRF', () => {
  const cors = onRoute({ cors: { allowOrigins: ['https://a.test'], allowMethods: ['GET'] } })
  const origin = [{ name: 'origin', digest: '00' }]

  it('answers preflight requests', async () => {
    const headers = fields({ origin: 'https://a.test', 'access-control-request-method': 'GET' })
    const { outcome } = await simulate(cors, { method: 'OPTIONS', headers })
    expect(outcome).toMatchObject({ verdict: 'answer', status: 200 })
  })

  it('needs the origin of preflight requests only', async () => {
    expect((await simulate(cors, { headers: origin })).outcome.verdict).toBe('forward')
    expect((await simulate(cors, { method: 'OPTIONS', headers: origin })).undecided).toEqual([
      'traffic.cors: the value of header origin is not recorded',
    ])
  })

  it('refuses requests of other sites', async () => {
    const csrf = onRoute({ csrf: {} })
    const headers = fields({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' })
    expect((await simulate(csrf, { method: 'PUT', headers })).outcome.status).toBe(403)
    expect((await simulate(csrf, { headers })).outcome.verdict).toBe('forward')
  })
})

describe('rate limits', () => {
  const limited = onRoute({ rateLimit: { local: [{ requests: 2, unit: 'Minutes' }] } })

  it('counts on the clock of the records, for each proxy', async () => {
    const simulator = await simulatorOf(limited)
    const start = Date.UTC(2026, 0, 1)
    const ask = async (seconds: number, proxy: string) => {
      const { recorded: record } = recorded([])
      const decision = record && { ...record, proxy }
      const request = aRequest({ timeMs: start + seconds * 1_000, recorded: decision })
      const { outcome } = await simulator.simulate(request)
      return outcome.verdict
    }
    const verdicts = [
      await ask(0, 'a'),
      await ask(1, 'a'),
      await ask(2, 'a'),
      await ask(2, 'b'),
      await ask(40, 'a'),
    ]
    expect(verdicts).toEqual(['forward', 'forward', 'answer', 'forward', 'forward'])
  })

  it('prefers the recorded verdict of an unchanged limit', async () => {
    const [step] = (await simulate(limited)).steps
    const steps = [
      { step: 'traffic.rateLimit', config: step?.config ?? '', verdict: 'answer' as const },
    ]
    const refused = recorded(steps, { response: { status: 429, reason: 'RateLimit' } })
    const { outcome, steps: taken } = await simulate(limited, refused)
    expect(outcome).toMatchObject({ verdict: 'answer', status: 429 })
    expect(taken).toMatchObject([{ basis: 'recorded' }])
  })

  it('is undecided about limits of a server', async () => {
    const descriptors = [{ entries: [{ name: 'path', expression: 'request.path' }] }]
    const asked = [
      ...onRoute({
        rateLimit: { global: { backendRef: toBackend('limits'), domain: 'd', descriptors } },
      }),
      staticBackend('limits', 9),
    ]
    expect((await simulate(asked)).undecided).toEqual([
      'traffic.rateLimit: it calls another service',
    ])
  })
})

describe('changes and answers of the gateway', () => {
  it('routes by a header that a policy sets before routing', async () => {
    const byTeam = {
      matches: [{ headers: [{ name: 'x-team', value: 'gold' }] }],
      backendRefs: [toBackend('gold')],
    }
    const objects = [
      staticBackend('web', 9),
      staticBackend('gold', 9),
      routeByHost('app', toBackend('gold'), byTeam),
      policy('p', 'Gateway/edge', {
        traffic: {
          phase: 'PreRouting',
          transformation: {
            request: { set: [{ name: 'x-team', value: 'request.headers["x-plan"]' }] },
          },
        },
      }),
    ]
    const paid = await simulate(objects, { headers: fields({ 'x-plan': 'gold' }) })
    expect(paid.outcome).toMatchObject({ verdict: 'forward', backend: 'default/gold' })
    const unknown = await simulate(objects, { headers: [{ name: 'x-plan', digest: '00' }] })
    expect(unknown.undecided).toEqual(['route: traffic.transformation may have changed it'])
  })

  it('answers with direct responses and redirects', async () => {
    const direct = onRoute({ directResponse: { status: 418, body: 'teapot' } })
    expect((await simulate(direct)).outcome).toMatchObject({ verdict: 'answer', status: 418 })
    const filters = [{ type: 'RequestRedirect', requestRedirect: { statusCode: 301 } }]
    const moved = [routeByHost('app', toBackend('web'), { filters, backendRefs: undefined })]
    expect((await simulate(moved)).outcome).toMatchObject({ verdict: 'answer', status: 301 })
  })

  it('is undecided if a rule reads a body that is not recorded', async () => {
    const reads = onRoute({
      authorization: { policy: { matchExpressions: ['string(request.body) == "x"'] } },
    })
    expect((await simulate(reads, { method: 'POST' })).undecided).toEqual([
      'traffic.authorization: the body of the request is not recorded',
    ])
    const known = await simulate(reads, { method: 'POST', body: Buffer.from('x') })
    expect(known.outcome.verdict).toBe('forward')
  })
})

describe('routes by headers that are known by digests', () => {
  const byVersion = (type: string, value: string) => [
    staticBackend('web', 9),
    staticBackend('new', 9),
    {
      ...routeByHost('app', toBackend('web')),
      spec: {
        parentRefs: [{ name: 'edge' }],
        hostnames: ['app.example.com'],
        rules: [
          {
            matches: [{ headers: [{ name: 'x-version', type, value }] }],
            backendRefs: [toBackend('new')],
          },
          { backendRefs: [toBackend('web')] },
        ],
      },
    },
  ]
  const digestKey = Buffer.from('0123456789abcdef')

  it('compares digests for exact matches', async () => {
    const ask = async (value: string) => {
      const headers = [{ name: 'x-version', digest: digestOf(value, digestKey) }]
      return (await simulate(byVersion('Exact', 'v2'), { headers }, { digestKey })).outcome.backend
    }
    expect(await ask('v2')).toBe('default/new')
    expect(await ask('v1')).toBe('default/web')
  })

  it('is undecided without the key, and for regular expressions', async () => {
    const headers = [{ name: 'x-version', digest: digestOf('v2', digestKey) }]
    const reason = ['route: the value of header x-version is not recorded']
    expect((await simulate(byVersion('Exact', 'v2'), { headers })).undecided).toEqual(reason)
    const byPattern = byVersion('RegularExpression', 'v[2-9]')
    expect((await simulate(byPattern, { headers }, { digestKey })).undecided).toEqual(reason)
    const other = { headers, host: 'other.example.com' }
    expect((await simulate(byPattern, other, { digestKey })).outcome.status).toBe(404)
  })
})

function digestOf(value: string, key: Uint8Array): string {
  const core = createIoCore({ memoryPages: 64 })
  const digests = new FieldDigests(core, key)
  const bytes = Buffer.from(`x${value}`)
  const spans = new Int32Array([0, 1, 1, bytes.length, 0])
  digests.load(bytes, 0, spans, 1)
  digests.digestEach(spans)
  const at = digests.valueAt(0)
  return core.bytes.toString('hex', at, at + 8)
}
