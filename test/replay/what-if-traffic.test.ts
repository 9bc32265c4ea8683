/** `sluice what-if` on the records of a gateway: one change of each kind of policy and route. */
import { createHash } from 'node:crypto'
import { appendFileSync, cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { decisionFiles } from '../../src/past/decisions/ring.ts'
import { useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  type Manifest,
  manifest,
  policy,
  routeByHost,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const folder = useFolder('sluice-what-if-traffic-')
const records = join(folder, 'decisions')
const upstream = useUpstream()
const other = useUpstream('other')
const checker = useUpstream('checker', ({ headers }, response) => {
  response.writeHead(headers.authorization === 'Bearer good' ? 200 : 401).end()
})
const port = await freePort()
const key = await signingKey('one')
const issuer = 'https://idp.example.com'
const jwt = (audiences: readonly string[]) => ({
  jwtAuthentication: {
    providers: [{ issuer, audiences, jwks: { inline: JSON.stringify(keySetOf(key)) } }],
  },
})
const hashed = (password: string) =>
  `ann:{SHA}${createHash('sha1').update(password).digest('base64')}`
const deny = (...matchExpressions: string[]) => ({
  authorization: { action: 'Deny', policy: { matchExpressions } },
})
const limit = (requests: number) => ({ rateLimit: { local: [{ requests, unit: 'Hours' }] } })
const setHeader = (value: string) => ({
  transformation: { request: { set: [{ name: 'x-set', value: `'${value}'` }] } },
})
const on = (name: string, traffic: Manifest) => policy(name, `HTTPRoute/${name}`, { traffic })
const split = (main: number, second: number) =>
  httpRoute('weights', {
    hostnames: [hostOf('weights')],
    rules: [
      {
        backendRefs: [toBackend('main', { weight: main }), toBackend('second', { weight: second })],
      },
    ],
  })
const redirect = (hostname: string) =>
  httpRoute('redirect', {
    hostnames: [hostOf('redirect')],
    rules: [{ filters: [{ type: 'RequestRedirect', requestRedirect: { hostname } }] }],
  })
const modify = (value: string) =>
  routeByHost('modify', toBackend('main'), {
    filters: [
      { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x-a', value }] } },
    ],
  })
const matching = (path: string) =>
  routeByHost('match', toBackend('main'), {
    matches: [{ path: { type: 'PathPrefix', value: path } }],
  })

const noDeny = deny("request.path == '/never'")
const policies: Readonly<Record<string, Manifest>> = {
  authz: deny("request.headers['x-team'] == 'bad'", "request.path == '/never'"),
  keys: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  basic: { basicAuthentication: { users: [hashed('right')] } },
  jwt: jwt(['app']),
  cors: { cors: { allowOrigins: ['https://a.example.com'] } },
  csrf: { csrf: {} },
  rate: limit(2),
  transform: setHeader('one'),
  direct: { directResponse: { status: 200, body: 'one' } },
  ext: { extAuth: { backendRef: toBackend('checker'), http: {} } },
  slow: { timeouts: { request: '5s' }, retry: { attempts: 1 } },
}
const objects = (): Manifest[] => [
  gateway(port),
  staticBackend('main', upstream.port),
  staticBackend('second', other.port),
  staticBackend('checker', checker.port),
  secret('keys', { ann: 'key-of-ann' }),
  ...Object.entries(policies).flatMap(([name, traffic]) => [
    routeByHost(name, toBackend('main')),
    on(name, traffic),
  ]),
  routeByHost('swap', toBackend('main')),
  split(1, 0),
  redirect('new.example.com'),
  modify('one'),
  matching('/'),
]
const running = useGateway(() => ({
  manifests: objects(),
  args: ['--record', 'all', '--record-dir', records],
}))

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

/** The requests to each host. */
async function requests(): Promise<readonly (readonly [name: string, request: TestRequest])[]> {
  const token = await sign(key, { iss: issuer, aud: 'app', sub: 'ann' })
  const basic = `Basic ${Buffer.from('ann:right').toString('base64')}`
  const post = (origin: string) => ({ method: 'POST', headers: { origin } })
  const preflight = {
    method: 'OPTIONS',
    headers: { origin: 'https://a.example.com', 'access-control-request-method': 'PUT' },
  }
  return [
    ['authz', { headers: { 'x-team': 'bad' } }],
    ['authz', { headers: { 'x-team': 'good' } }],
    ['keys', {}],
    ['keys', bearer('key-of-ann')],
    ['basic', {}],
    ['basic', { headers: { authorization: basic } }],
    ['jwt', {}],
    ['jwt', bearer(token)],
    ['cors', {}],
    ['cors', preflight],
    ['csrf', post('https://evil.example.com')],
    ['csrf', post(`http://${hostOf('csrf')}`)],
    ['rate', {}],
    ['rate', {}],
    ['rate', {}],
    ['transform', {}],
    ['direct', {}],
    ['ext', bearer('good')],
    ['ext', bearer('bad')],
    ['slow', {}],
    ['swap', {}],
    // This id decides that the request moves if another backend gets half of the weight.
    ['weights', { headers: { 'x-request-id': 'moves' } }],
    ['redirect', {}],
    ['modify', {}],
    ['match', { path: '/a' }],
    ['match', { path: '/b' }],
  ]
}

let total = 0
beforeAll(async () => {
  for (const [name, request] of await requests()) {
    await running.send(port, { host: hostOf(name), ...request })
    total++
  }
  await running.stop()
})

async function whatIf(candidate: readonly Manifest[], ...more: string[]) {
  const file = join(folder, 'candidate.yaml')
  writeFileSync(file, manifest(...candidate))
  const args = ['--log-file', running.logFile, '-f', file, '--requests', records, ...more]
  const { code, stdout, stderr } = await sluice('what-if', ...args, '-o', 'json')
  expect(stderr).toBe('')
  const { requests } = JSON.parse(stdout)
  return { code, requests }
}

/** The groups without their examples. */
async function groups(...candidate: Manifest[]) {
  const { requests } = await whatIf(candidate, '--overlay')
  expect(requests.total).toBe(total)
  expect(requests.unchanged + requests.changed + requests.undecided).toBe(total)
  return {
    undecided: requests.undecidedGroups.map(
      ({ reason, count }: { reason: string; count: number }) => `${count}: ${reason}`,
    ),
    changed: requests.groups.map(
      (group: { from: string; to: string; count: number; cause: string; kinds: string[] }) =>
        `${group.count}: ${group.from} → ${group.to} (${group.kinds}): ${group.cause}`,
    ),
  }
}

describe('sluice what-if with recorded requests', () => {
  it('reports no change if the candidate equals the present', async () => {
    const { code, requests } = await whatIf(objects())
    expect(code).toBe(0)
    expect(requests).toMatchObject({ total, unchanged: total, changed: 0, undecided: 0 })
  })

  it('reports a rule of authorization that is removed', async () => {
    expect(await groups(on('authz', noDeny))).toEqual({
      undecided: [],
      changed: [
        '1: deny 403 → allow (deny-to-allow,verdict): GatewayPolicy default/authz changed (spec.traffic.authorization.policy.matchExpressions[0] was removed)',
      ],
    })
  })

  it.each<[title: string, candidate: Manifest, expected: Awaited<ReturnType<typeof groups>>]>([
    [
      'asks for fewer API keys',
      on('keys', { apiKeyAuthentication: { secretRef: { name: 'keys' }, mode: 'Optional' } }),
      {
        undecided: ['2: traffic.apiKeyAuthentication: the value of its Secret is unknown'],
        changed: [],
      },
    ],
    [
      'has other passwords',
      on('basic', { basicAuthentication: { users: [hashed('other')] } }),
      {
        undecided: [
          '1: traffic.basicAuthentication: the value of header authorization is not recorded',
        ],
        changed: [],
      },
    ],
    [
      'wants another audience of tokens',
      on('jwt', jwt(['other'])),
      {
        undecided: [
          '1: traffic.jwtAuthentication: the value of header authorization is not recorded',
        ],
        changed: [],
      },
    ],
    [
      'allows another origin',
      on('cors', { cors: { allowOrigins: ['https://b.example.com'] } }),
      {
        undecided: [],
        changed: [
          '1: answer 200 → answer 200 with other content (verdict): GatewayPolicy default/cors changed (spec.traffic.cors.allowOrigins[0] changed)',
        ],
      },
    ],
    [
      'lets another site send forms',
      on('csrf', { csrf: { additionalOrigins: ['https://evil.example.com'] } }),
      {
        undecided: [],
        changed: [
          '1: deny 403 → allow (deny-to-allow,verdict): GatewayPolicy default/csrf changed (spec.traffic.csrf.additionalOrigins was added)',
        ],
      },
    ],
    [
      'has a lower rate limit',
      on('rate', limit(1)),
      {
        undecided: [],
        changed: [
          '1: allow → deny 429 (allow-to-deny,verdict,status,limit): GatewayPolicy default/rate changed (spec.traffic.rateLimit.local[0].requests changed)',
        ],
      },
    ],
    ['sets another header', on('transform', setHeader('two')), { undecided: [], changed: [] }],
    [
      'answers with another status',
      on('direct', { directResponse: { status: 503, body: 'two' } }),
      {
        undecided: [],
        changed: [
          '1: answer 200 → deny 503 (allow-to-deny,verdict,status): GatewayPolicy default/direct changed (spec.traffic.directResponse.status changed, spec.traffic.directResponse.body changed)',
        ],
      },
    ],
    [
      'asks another service for authorization',
      on('ext', { extAuth: { backendRef: toBackend('main'), http: {} } }),
      {
        undecided: ['2: traffic.extAuth: the value of header authorization is not recorded'],
        changed: [],
      },
    ],
    ['waits longer', on('slow', { timeouts: { request: '9s' } }), { undecided: [], changed: [] }],
    ['modifies a header otherwise', modify('two'), { undecided: [], changed: [] }],
    [
      'matches fewer paths',
      matching('/a'),
      {
        undecided: [],
        changed: [
          '1: allow by HTTPRoute default/match rule 0 → deny 404 by no route (route,allow-to-deny,verdict,status): HTTPRoute default/match changed (spec.rules[0].matches[0].path.value changed)',
        ],
      },
    ],
    [
      'names another backend',
      routeByHost('swap', toBackend('second')),
      {
        undecided: [],
        changed: [
          '1: allow to default/main → allow to default/second (backend): HTTPRoute default/swap changed (spec.rules[0].backendRefs[0].name changed)',
        ],
      },
    ],
    [
      'moves all weight to another backend',
      split(0, 1),
      {
        undecided: [],
        changed: [
          '1: allow to default/main → allow to default/second (backend): HTTPRoute default/weights changed (spec.rules[0].backendRefs[0].weight changed, spec.rules[0].backendRefs[1].weight changed)',
        ],
      },
    ],
    [
      'moves half of the weight to another backend',
      split(1, 1),
      {
        undecided: [],
        changed: [
          '1: allow to default/main → allow to default/second by weight (backend): HTTPRoute default/weights changed (spec.rules[0].backendRefs[1].weight changed)',
        ],
      },
    ],
    [
      'redirects to another host',
      redirect('newer.example.com'),
      {
        undecided: [],
        changed: [
          '1: answer 302 → answer 302 with other content (verdict): HTTPRoute default/redirect changed (spec.rules[0].filters[0].requestRedirect.hostname changed)',
        ],
      },
    ],
  ])('reports requests for which the candidate %s', async (_, candidate, expected) => {
    expect(await groups(candidate)).toEqual(expected)
  })

  it('reports requests of a route that is removed, with examples', async () => {
    const candidate = objects().filter(
      ({ kind, metadata }) =>
        kind !== 'HTTPRoute' || (metadata as { name: string }).name !== 'match',
    )
    const { code, requests } = await whatIf(candidate)
    expect(code).toBe(1)
    expect(requests.groups).toEqual([
      {
        kinds: ['route', 'allow-to-deny', 'verdict', 'status'],
        cause: 'HTTPRoute default/match was removed',
        from: 'allow by HTTPRoute default/match rule 0',
        to: 'deny 404 by no route',
        count: 2,
        examples: ['/a', '/b'].map((path) => ({
          id: expect.any(String),
          time: expect.stringMatching(/^20/),
          method: 'GET',
          host: hostOf('match'),
          path,
        })),
      },
    ])
  })

  it('exits with 1 only for the kinds of --fail-on, and with 3 if requests are only undecided', async () => {
    const removed = [on('authz', noDeny)]
    const codeOf = async (...kinds: string[]) => (await whatIf(removed, '--overlay', ...kinds)).code
    expect(await codeOf('--fail-on', 'deny-to-allow,route')).toBe(1)
    expect(await codeOf('--fail-on', 'allow-to-deny,undecided')).toBe(0)
    expect((await whatIf([on('jwt', jwt(['other']))], '--overlay')).code).toBe(3)
    expect((await whatIf([on('slow', { timeouts: { request: '9s' } })], '--overlay')).code).toBe(0)
  })

  it('reports unreadable records by file and offset, and compares the others', async () => {
    const damaged = join(folder, 'damaged')
    cpSync(records, damaged, { recursive: true })
    const last = decisionFiles(damaged).at(-1) ?? ''
    appendFileSync(join(damaged, last), 'no block')
    const file = join(folder, 'authz.yaml')
    writeFileSync(file, manifest(on('authz', noDeny)))
    const args = ['--log-file', running.logFile, '-f', file, '--overlay', '--requests', damaged]
    const { code, stdout, stderr } = await sluice('what-if', ...args)
    expect(stderr).toMatch(/damaged.*: offset \d+: /)
    expect(code).toBe(1)
    expect(stdout).toContain(`${total} requests: ${total - 1} unchanged, 1 changed, 0 undecided`)
    expect(stdout).toContain('deny 403 → allow, 1 request, because GatewayPolicy default/authz')
    const nowhere = await sluice('what-if', ...args.slice(0, -1), join(folder, 'nowhere'))
    expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('is not a folder') })
    writeFileSync(join(damaged, last), 'no block at all')
    for (const other of decisionFiles(damaged)) if (other !== last) rmSync(join(damaged, other))
    const nothing = await sluice('what-if', ...args)
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining('no record in') })
  })
})
