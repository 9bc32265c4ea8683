import { beforeAll, describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway, httpRoute, staticBackend, toBackend } from '../support/manifests.ts'

interface Schema {
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

interface Definition {
  readonly spec: {
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}

let definitions: readonly Definition[]
beforeAll(async () => {
  const { stdout } = await sluice('crds', '-o', 'json')
  definitions = (JSON.parse(stdout) as { items: Definition[] }).items
})

/** A field of a kind as the cluster API publishes it; `[]` steps into the items of a list. */
function published(kind: string, path: string): Schema | undefined {
  const definition = definitions.find(({ spec }) => spec.names.kind === kind)
  const root = definition?.spec.versions[0]?.schema.openAPIV3Schema
  const steps = path.split('.').flatMap((step) => step.match(/\[\]|[^[\]]+/g) ?? [])
  return steps.reduce<Schema | undefined>(
    (at, step) => (step === '[]' ? at?.items : at?.properties?.[step]),
    root,
  )
}

/** What the published definition says: bounds for the API server, the default for people. */
const rows: readonly [
  id: string,
  kind: string,
  path: string,
  expected: Partial<Schema>,
  byDefault: string,
][] = [
  [
    'limit.body-buffering',
    'GatewayPolicy',
    'spec.frontend.http.maxBufferSize',
    { minimum: 1 },
    '2097152',
  ],
  [
    'limit.http-1.1-headers',
    'GatewayPolicy',
    'spec.frontend.http.http1MaxHeaders',
    { minimum: 1, maximum: 4096 },
    '100',
  ],
  [
    'limit.http-1.1-idle-timeout',
    'GatewayPolicy',
    'spec.frontend.http.http1IdleTimeout',
    {},
    '10m',
  ],
  [
    'limit.http-2-frame-size',
    'GatewayPolicy',
    'spec.frontend.http.http2FrameSize',
    { minimum: 16384, maximum: 1677215 },
    '16384',
  ],
  ['limit.tls-handshake-timeout', 'GatewayPolicy', 'spec.frontend.tls.handshakeTimeout', {}, '15s'],
  [
    'limit.tcp-keepalive',
    'GatewayPolicy',
    'spec.frontend.tcp.keepalive.retries',
    { minimum: 1, maximum: 64 },
    '9',
  ],
  ['limit.tcp-keepalive', 'GatewayPolicy', 'spec.frontend.tcp.keepalive.time', {}, '180s'],
  ['limit.tcp-keepalive', 'GatewayPolicy', 'spec.frontend.tcp.keepalive.interval', {}, '180s'],
  [
    'limit.jwks-cache',
    'GatewayPolicy',
    'spec.traffic.jwtAuthentication.providers[].jwks.remote.cacheDuration',
    {},
    '5m',
  ],
  [
    'limit.prompt-caching',
    'GatewayBackend',
    'spec.policies.ai.promptCaching.minTokens',
    { minimum: 0 },
    '1024',
  ],
  ['limit.answer-cache', 'GatewayBackend', 'spec.policies.ai.cache.ttl', {}, '5m'],
]

describe('limits with a default, as the definitions publish them', () => {
  it.each(rows)('[%s] %s %s is %o by default %s', (_, kind, path, expected, byDefault) => {
    const field = published(kind, path)
    expect(field).toMatchObject(expected)
    expect(field?.description).toContain(`Default: ${byDefault}.`)
  })

  it('[limit.rate-limiting] bounds local and global limits', () => {
    const limits = 'spec.traffic.rateLimit'
    expect(published('GatewayPolicy', `${limits}.local`)).toMatchObject({
      minItems: 1,
      maxItems: 16,
    })
    for (const field of ['requests', 'tokens']) {
      expect(published('GatewayPolicy', `${limits}.local[].${field}`)).toMatchObject({ minimum: 1 })
    }
    expect(published('GatewayPolicy', `${limits}.local[].unit`)).toMatchObject({
      enum: ['Seconds', 'Minutes', 'Hours', 'Days', 'Months'],
    })
    for (const list of ['descriptors', 'descriptors[].entries']) {
      expect(published('GatewayPolicy', `${limits}.global.${list}`)).toMatchObject({
        minItems: 1,
        maxItems: 16,
      })
    }
  })
})

const port = await freePort()

describe('header fields of a request', () => {
  const upstream = useUpstream()
  const running = useGateway(() => ({
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
    ],
  }))

  const withFields = (count: number) => {
    // The client sends Host and Connection as well.
    const names = Array.from({ length: count - 2 }, (_, index) => [`x-${index}`, '1'])
    return running.send(port, { headers: Object.fromEntries(names) })
  }

  it('[limit.http-1.1-headers] are 100 at most by default', async () => {
    expect((await withFields(100)).status).toBe(200)
    expect((await withFields(101)).status).toBe(431)
  })
})
