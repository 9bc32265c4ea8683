/** Policies with one reference to a missing object: that field fails closed, the others work. */
import { beforeAll, describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const traffic = (field: string, spec: object) => ({ traffic: { [field]: spec } })
const backend = (field: string, spec: object) => ({ backend: { [field]: spec } })
const jwks = { remote: { jwksPath: '/keys', backendRef: toBackend('absent') } }
const counted = { domain: 'edge', descriptors: [{ entries: [{ name: 'a', expression: '"b"' }] }] }

/** Name, field, response status of covered requests, and the missing object in the message. */
const cases = [
  {
    name: 'users',
    spec: traffic('basicAuthentication', { secretRef: { name: 'absent' } }),
    status: 401,
    message: 'spec.traffic.basicAuthentication.secretRef: Secret absent does not exist',
  },
  {
    name: 'api-keys',
    spec: traffic('apiKeyAuthentication', { secretRef: { name: 'absent' } }),
    status: 401,
    message: 'spec.traffic.apiKeyAuthentication.secretRef: Secret absent does not exist',
  },
  {
    name: 'key-set',
    spec: traffic('jwtAuthentication', { providers: [{ issuer: 'a', jwks }] }),
    status: 401,
    message: 'jwks.remote: GatewayBackend default/absent does not exist',
  },
  {
    name: 'judge',
    spec: traffic('extAuth', { backendRef: toBackend('absent'), grpc: {} }),
    status: 500,
    message: 'spec.traffic.extAuth.backendRef: GatewayBackend default/absent does not exist',
  },
  {
    name: 'processor',
    spec: traffic('extProc', { backendRef: toBackend('absent') }),
    status: 500,
    message: 'spec.traffic.extProc.backendRef: GatewayBackend default/absent does not exist',
  },
  {
    name: 'counter',
    spec: traffic('rateLimit', { global: { ...counted, backendRef: toBackend('absent') } }),
    status: 500,
    message:
      'spec.traffic.rateLimit.global.backendRef: GatewayBackend default/absent does not exist',
  },
  {
    name: 'credentials',
    spec: backend('auth', { secretRef: { name: 'absent' } }),
    status: 500,
    message: 'spec.backend.auth.secretRef: Secret absent does not exist',
  },
  {
    name: 'authorities',
    spec: backend('tls', { caCertificateRefs: [{ name: 'absent' }] }),
    status: 500,
    message: 'spec.backend.tls.caCertificateRefs[0]: ConfigMap absent does not exist',
  },
  {
    name: 'certificate',
    spec: backend('tls', { mtlsCertificateRef: [{ name: 'absent' }] }),
    status: 500,
    message: 'spec.backend.tls.mtlsCertificateRef[0]: Secret absent does not exist',
  },
]

/** Shows on the answer that the other fields of the policy are in force. */
const mark = { response: { set: [{ name: 'x-policy', value: 'works' }] } }

function marked(spec: { readonly traffic?: object; readonly backend?: object }) {
  return { ...spec, traffic: { ...spec.traffic, headerModifiers: mark } }
}

const upstream = useUpstream()
const port = await freePort()
const running = useGateway(() => {
  const routeOf = (name: string) =>
    httpRoute(name, {
      hostnames: [hostOf(name)],
      rules: [{ backendRefs: [toBackend('main')] }],
    })
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      ...cases.flatMap(({ name, spec }) => [
        routeOf(name),
        policy(name, `HTTPRoute/${name}`, marked(spec)),
        policy(`only-${name}`, `HTTPRoute/only-${name}`, spec),
        routeOf(`only-${name}`),
      ]),
    ],
  }
})

interface Stated {
  readonly name: string
  readonly status: {
    readonly conditions: readonly {
      type: string
      status: string
      reason: string
      message: string
    }[]
  }
}

/** What the statuses say once all of the manifests have been read. */
async function statuses(): Promise<readonly Stated[]> {
  const { stdout } = await sluice('status', '--log-file', running.logFile, '-o', 'json')
  return JSON.parse(stdout).objects
}

const conditionOf = (all: readonly Stated[], name: string, type: string) =>
  all.find((one) => one.name === name)?.status.conditions.find((one) => one.type === type)

describe('a policy with a missing reference', () => {
  let stated: readonly Stated[]

  beforeAll(async () => {
    const last = cases.at(-1)?.name ?? ''
    await running.condition('GatewayPolicy', `only-${last}`, 'Accepted', 'False')
    stated = await statuses()
  })

  it.each(cases)(
    'to $name is PartiallyValid, and refuses the requests that the field covers',
    async (one) => {
      const { name, spec, status, message } = one
      const { message: text, ...accepted } = conditionOf(stated, name, 'Accepted') ?? {}
      expect(accepted).toMatchObject({ status: 'True', reason: 'PartiallyValid' })
      expect(text).toContain(message)
      expect(text).toContain('protections named here stay closed')
      expect(conditionOf(stated, name, 'Attached')).toMatchObject({ status: 'True' })
      const answer = await running.send(port, { host: hostOf(name) })
      expect(answer.status).toBe(status)
      // What refuses before other fields of traffic run leaves them nothing to do.
      expect(answer.headers['x-policy']).toBe('traffic' in spec ? undefined : 'works')
    },
  )

  it.each(cases)('to $name is Invalid if the policy has nothing else', async (one) => {
    const { name, status, message } = one
    const accepted = conditionOf(stated, `only-${name}`, 'Accepted')
    expect(accepted).toMatchObject({ status: 'False', reason: 'Invalid' })
    expect(accepted?.message).toContain(message)
    expect((await running.send(port, { host: hostOf(`only-${name}`) })).status).toBe(status)
  })

  it('becomes valid and lets requests through once the object exists', async () => {
    const data = { key: Buffer.from('opensesame').toString('base64') }
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'absent' }, data }
    running.write('secret.yaml', manifest(secret))
    const headers = { authorization: 'Bearer opensesame' }
    const request = { host: hostOf('api-keys'), headers }
    const answer = await running.sendUntil(port, request, ({ status }) => status === 200)
    expect(answer.headers['x-policy']).toBe('works')
    const accepted = conditionOf(await statuses(), 'api-keys', 'Accepted')
    expect(accepted).toMatchObject({ status: 'True', reason: 'Valid' })
  })
})
