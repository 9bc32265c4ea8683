/** Policies with variants of which each request gets the first whose condition is true. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  manifest,
  policy,
  routeByHost,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

type Fields = Readonly<Record<string, unknown>>

const upstream = useUpstream()
const slow = useUpstream('slow', (_, response) => {
  const timer = setTimeout(() => response.end('late'), 60_000)
  response.on('close', () => clearTimeout(timer))
})
const staff = useUpstream('staff', (_, response) => response.writeHead(200).end())
const strangers = useUpstream('strangers', (_, response) => response.writeHead(403).end())
const port = await freePort()

const isVip = 'request.headers["x-plan"] == "vip"'
const setHeader = (value: string) => ({ set: [{ name: 'x-variant', value: `"${value}"` }] })
const asking = (service: string) => ({ backendRef: toBackend(service), http: {} })
const perHour = (requests: number) => ({ local: [{ requests, unit: 'Hours' }] })

/** Name of a route -> the section `traffic` of its policy. */
const conditional: Readonly<Record<string, Fields>> = {
  transformed: {
    transformation: {
      conditional: [
        {
          condition: isVip,
          policy: { request: setHeader('vip'), response: setHeader('vip answer') },
        },
        // The header may be missing, and then the expression fails.
        {
          condition: 'request.headers["x-plan"].startsWith("trial")',
          policy: { request: setHeader('trial') },
        },
        { policy: { request: setHeader('rest') } },
      ],
    },
  },
  body: {
    transformation: {
      conditional: [
        { condition: 'json(request.body).kind == "a"', policy: { request: setHeader('a') } },
        { policy: { request: setHeader('other') } },
      ],
    },
  },
  direct: {
    directResponse: {
      conditional: [
        { condition: 'request.path == "/health"', policy: { status: 204 } },
        { condition: 'request.path == "/teapot"', policy: { status: 418, body: 'short' } },
      ],
    },
  },
  authorized: {
    extAuth: {
      conditional: [
        { condition: '"x-staff" in request.headers', policy: asking('staff') },
        { policy: asking('strangers') },
      ],
    },
  },
  limited: {
    rateLimit: { conditional: [{ condition: isVip, policy: perHour(3) }, { policy: perHour(1) }] },
  },
  timed: {
    timeouts: {
      conditional: [{ condition: 'request.path == "/quick"', policy: { request: '50ms' } }],
    },
  },
  broken: {
    extAuth: {
      conditional: [
        { condition: 'request.nothing', policy: asking('staff') },
        { policy: asking('staff') },
      ],
    },
  },
  lost: {
    extAuth: {
      conditional: [{ condition: isVip, policy: asking('absent') }, { policy: asking('staff') }],
    },
  },
}

const objects = () => [
  gateway(port),
  staticBackend('main', upstream.port),
  staticBackend('slow', slow.port),
  staticBackend('staff', staff.port),
  staticBackend('strangers', strangers.port),
  ...Object.entries(conditional).flatMap(([name, traffic]) => [
    routeByHost(name, toBackend(name === 'timed' ? 'slow' : 'main')),
    policy(name, `HTTPRoute/${name}`, { traffic }),
  ]),
]

describe('a conditional policy', () => {
  const folder = join(useFolder('sluice-conditional-'), 'decisions')
  const running = useGateway(() => ({
    manifests: objects(),
    args: ['--record', 'all', '--record-dir', folder],
  }))
  const send = (name: string, request: Parameters<typeof running.send>[1] = {}) =>
    running.send(port, { host: hostOf(name), ...request })
  const variantOf = async (name: string, request: Parameters<typeof running.send>[1]) => {
    const { body, headers } = await send(name, request)
    return [JSON.parse(body).headers['x-variant'], headers['x-variant']]
  }

  it('runs the first variant whose condition is true, on request and response', async () => {
    const plan = (value: string) => ({ headers: { 'x-plan': value } })
    expect(await variantOf('transformed', plan('vip'))).toEqual(['vip', 'vip answer'])
    expect(await variantOf('transformed', plan('trial-7'))).toEqual(['trial', undefined])
    expect(await variantOf('transformed', plan('basic'))).toEqual(['rest', undefined])
    expect(await variantOf('transformed', {})).toEqual(['rest', undefined])
  })

  it('may decide by the body', async () => {
    const post = (body: string) => ({ method: 'POST', body })
    expect(await variantOf('body', post('{"kind":"a"}'))).toEqual(['a', undefined])
    expect(await variantOf('body', post('no JSON'))).toEqual(['other', undefined])
  })

  it('without a variant for the rest leaves the rest alone', async () => {
    expect((await send('direct', { path: '/health' })).status).toBe(204)
    expect((await send('direct', { path: '/teapot' })).body).toBe('short')
    expect(JSON.parse((await send('direct', { path: '/shop' })).body).path).toBe('/shop')
    expect((await send('timed', { path: '/quick' })).status).toBe(504)
  })

  it('asks the authorization service of the variant', async () => {
    expect((await send('authorized', { headers: { 'x-staff': '1' } })).status).toBe(200)
    expect((await send('authorized')).status).toBe(403)
  })

  it('counts the limit of each variant by itself', async () => {
    const vip = { headers: { 'x-plan': 'vip' } }
    const statuses = async (count: number, request: Parameters<typeof running.send>[1]) => {
      const found: number[] = []
      for (let n = 0; n < count; n++) found.push((await send('limited', request)).status)
      return found
    }
    expect(await statuses(4, vip)).toEqual([200, 200, 200, 429])
    expect(await statuses(2, {})).toEqual([200, 429])
  })

  it('that protects refuses all requests if one of its variants cannot be enforced', async () => {
    const vip = { headers: { 'x-plan': 'vip' } }
    expect((await send('broken')).status).toBe(500)
    expect((await send('lost')).status).toBe(500)
    expect((await send('lost', vip)).status).toBe(500)
    const accepted = async (name: string) =>
      (await running.condition('GatewayPolicy', name, 'Accepted', 'False')).message
    expect(await accepted('broken')).toContain('spec.traffic.extAuth.conditional[0].condition: ')
    const resolved = await running.status('GatewayPolicy', 'lost')
    expect(JSON.stringify(resolved)).toContain(
      'spec.traffic.extAuth.conditional[0].policy.backendRef: ',
    )
  })

  it('names the variant in the record of a request', async () => {
    const { headers } = await send('transformed', { headers: { 'x-plan': 'vip' } })
    const id = `${headers['x-request-id']}`
    const shown = await waitFor('the record', async () => {
      const { code, stdout } = await sluice(
        'explain',
        'request',
        '--id',
        id,
        '--record-dir',
        folder,
      )
      return code === 0 && stdout
    })
    expect(shown).toContain('conditional[0] applies')
  })
})

describe('sluice validate', () => {
  const folder = useFolder('sluice-variants-')

  const problemsOf = async (traffic: Fields) => {
    const file = join(folder, 'policy.yaml')
    writeFileSync(file, manifest(policy('p', 'HTTPRoute/r', { traffic })))
    const { stdout, stderr } = await sluice('validate', '-f', file)
    return stdout + stderr
  }

  it('refuses variants that leave requests without a protection, and mixed forms', async () => {
    const vipOnly = { conditional: [{ condition: isVip, policy: asking('staff') }] }
    expect(await problemsOf({ extAuth: vipOnly })).toContain(
      'spec.traffic.extAuth.conditional: the last variant must have no condition and all others must have one',
    )
    const early = { conditional: [{ policy: { status: 204 } }, { policy: { status: 404 } }] }
    expect(await problemsOf({ directResponse: early })).toContain(
      'spec.traffic.directResponse.conditional: only the last variant may have no condition',
    )
    const both = { status: 204, conditional: [{ policy: { status: 404 } }] }
    expect(await problemsOf({ directResponse: both })).toContain(
      'conditional excludes the other fields of the policy',
    )
    expect(await problemsOf({ directResponse: { body: 'x' } })).toContain(
      'status is required unless conditional is set',
    )
    const wrong = { conditional: [{ condition: isVip, policy: { status: 99 } }] }
    expect(await problemsOf({ directResponse: wrong })).toContain(
      'spec.traffic.directResponse.conditional[0].policy.status',
    )
  })
})
