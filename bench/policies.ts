/**
 * Claim: a usual set of policies (a verified token, a rule on its claims, a local limit, an access log
 * of one's own) makes a request cost at most 1.3 times as much, and the first look at a
 * token at most 1.3 times the bare verification of its signature. The same gateway is measured with
 * and without the policies, by the same requests, as in `proxy/http1`.
 */
import { createPublicKey, createSign, generateKeyPairSync, verify } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TokenVerifier } from '../src/engines/auth/jwt/verifier.ts'
import { policy } from '../test/support/manifests.ts'
import { type BenchContext, cpuNanoseconds, interleave, pinSelf, type Row } from './harness.ts'
import { askOnce, type Scenario, scenarios, startBenchUpstream } from './proxy/load.ts'
import { loadCore, type MeasuredProxy } from './proxy/process.ts'
import { slicedCosts } from './proxy/slices.ts'
import { startSluice } from './proxy/sluice.ts'

const issuer = 'https://idp.example.com'
const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwk = {
  ...(pair.publicKey.export({ format: 'jwk' }) as Record<string, string>),
  kid: 'one',
  alg: 'RS256',
}

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

function tokenOf(n: number): string {
  const exp = Math.floor(Date.now() / 1000) + 3600
  const claims = { iss: issuer, sub: `u-${n}`, exp, scope: 'read write', team: 'a' }
  const signed = `${part({ alg: 'RS256', kid: 'one' })}.${part(claims)}`
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(pair.privateKey, 'base64url')}`
}

export const guarded = [
  policy('guard', 'HTTPRoute/measured', {
    traffic: {
      jwtAuthentication: {
        providers: [{ issuer, jwks: { inline: JSON.stringify({ keys: [jwk] }) } }],
      },
      authorization: {
        policy: {
          matchExpressions: ['request.headers["x-team"] == "a" && jwt.sub.startsWith("u-")'],
        },
      },
      rateLimit: { local: [{ requests: 1_000_000_000, unit: 'Seconds' }] },
    },
  }),
  policy('log', 'Gateway/edge', {
    frontend: {
      accessLog: {
        filter: 'response.code < 600',
        attributes: { remove: ['http.version'], add: [{ name: 'user', expression: 'jwt.sub' }] },
      },
    },
  }),
]

/** The measured GET with a token; all requests bear the same one. */
export function withToken(): Scenario {
  const token = `authorization: Bearer ${tokenOf(1)}`
  const text = scenarios.get.request.toString('latin1').replace(/authorization: [^\r]*/, token)
  return { ...scenarios.get, request: Buffer.from(text, 'latin1') }
}

async function proxies({ rounds, quick, note }: BenchContext): Promise<Row> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folders = [0, 1].map(() => mkdtempSync(join(tmpdir(), 'sluice-bench-')))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  try {
    const [one = '', other = ''] = folders
    const plain = await startSluice(one, upstream.port, 10)
    running.push(plain)
    const full = await startSluice(other, upstream.port, 10, { objects: guarded })
    running.push(full)
    const scenario = withToken()
    const head = await askOnce(full.port, scenario.request)
    const refused = await askOnce(full.port, scenarios.get.request)
    if (!head.startsWith('HTTP/1.1 200') || !refused.startsWith('HTTP/1.1 401')) {
      throw new Error(`the policies do not hold:\n${head}\n\n${refused}`)
    }
    const [withPolicies = [], without = []] = await slicedCosts([full, plain], {
      scenario,
      rounds,
      seconds: quick ? 0.6 : 1.5,
      warmUpSeconds: quick ? 2 : 5,
    })
    return {
      id: 'policies.request',
      unit: 'µs',
      own: withPolicies,
      peer: { name: 'the plain proxy', samples: without },
      bound: { atMost: 1.3 },
    }
  } finally {
    for (const proxy of running) await proxy.stop()
    upstream.close()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
}

async function firstVerification({ rounds, quick }: BenchContext): Promise<Row> {
  const count = quick ? 500 : 2_000
  const tokens = Array.from({ length: count }, (_, n) => tokenOf(n))
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const bare = tokens.map((token) => {
    const dot = token.lastIndexOf('.')
    return [
      Buffer.from(token.slice(0, dot)),
      Buffer.from(token.slice(dot + 1), 'base64url'),
    ] as const
  })
  const keys = [{ kid: 'one', algorithms: ['RS256'] as const, jwk }]
  const samples = await interleave(rounds, {
    own: () => {
      const verifier = new TokenVerifier([{ issuer, keys }])
      const now = Date.now()
      const spent = cpuNanoseconds(() => {
        for (const token of tokens) {
          if (typeof verifier.verify(token, now) === 'string') throw new Error('not verified')
        }
      })
      return spent / count / 1000
    },
    bare: () => {
      const spent = cpuNanoseconds(() => {
        for (const [signed, signature] of bare) {
          if (!verify('sha256', signed, key, signature)) throw new Error('not verified')
        }
      })
      return spent / count / 1000
    },
  })
  return {
    id: 'policies.rs256.first',
    unit: 'µs',
    own: samples.own,
    peer: { name: 'node:crypto', samples: samples.bare },
    bound: { atMost: 1.3 },
  }
}

export default async function bench(context: BenchContext): Promise<readonly Row[]> {
  return [await firstVerification(context), await proxies(context)]
}
