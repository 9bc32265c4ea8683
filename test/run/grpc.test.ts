import { afterAll, describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { GrpcCaller, startGrpcUpstream } from '../support/grpc.ts'
import {
  gateway,
  grpcRoute,
  httpRoute,
  manifest,
  policy,
  service,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const callers: GrpcCaller[] = []

const caller = (service: string, host = 'grpc.example.com'): GrpcCaller => {
  const made = new GrpcCaller(port, service, host)
  callers.push(made)
  return made
}

const authority = useAuthority()
const names = ['shop.Cart', 'shop.Search', 'other.Service']
const backendCertificate = authority.issue(['backend.example.com'])
const a = useFixture(() => startGrpcUpstream('a', names))
const b = useFixture(() => startGrpcUpstream('b', names))
const secure = useFixture(() => startGrpcUpstream('secure', names, backendCertificate))
const port = await freePort()
const securePort = await freePort()
const running = useGateway(() => {
  const toA = [toBackend('a')]
  const toB = [toBackend('b')]
  return {
    manifests: {
      'gateway.yaml': manifest(
        gateway(port, {
          listeners: [
            { name: 'http', port, protocol: 'HTTP' },
            {
              name: 'https',
              port: securePort,
              protocol: 'HTTPS',
              tls: { certificateRefs: [{ name: 'edge-tls' }] },
            },
          ],
        }),
        tlsSecret('edge-tls', authority.issue(['grpc.example.com'])),
        staticBackend('a', a.port),
        staticBackend('b', b.port),
        staticBackend('dead', 1),
        ...service('h2c', [b.port], { appProtocol: 'kubernetes.io/h2c' }),
        ...service('empty', []),
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'authorities' },
          data: { 'ca.crt': authority.certificate },
        },
        staticBackend('secure', secure.port, {
          tls: { sni: 'backend.example.com', caCertificateRefs: [{ name: 'authorities' }] },
        }),
      ),
      'routes.yaml': manifest(
        grpcRoute('methods', {
          hostnames: ['grpc.example.com'],
          rules: [
            {
              matches: [{ method: { service: 'shop.Cart', method: 'Unary' } }],
              backendRefs: toB,
            },
            { matches: [{ method: { service: 'shop.Cart' } }], backendRefs: toA },
            {
              matches: [{ method: { method: 'Upload' } }],
              filters: [
                {
                  type: 'RequestHeaderModifier',
                  requestHeaderModifier: { set: [{ name: 'x-set', value: 'yes' }] },
                },
              ],
              backendRefs: toB,
            },
            {
              matches: [
                { method: { type: 'RegularExpression', service: 'shop[.].+', method: 'D.*' } },
              ],
              backendRefs: toB,
            },
            {
              matches: [{ headers: [{ name: 'X-Team', value: 'red' }] }],
              backendRefs: [{ name: 'h2c', port: 80 }],
            },
          ],
        }),
        grpcRoute('everything', { hostnames: ['all.example.com'], rules: [{ backendRefs: toA }] }),
        grpcRoute('secure', {
          hostnames: ['secure.example.com'],
          rules: [{ backendRefs: [toBackend('secure')] }],
        }),
        grpcRoute('missing', {
          hostnames: ['missing.example.com'],
          rules: [{ backendRefs: [{ name: 'missing', port: 80 }] }],
        }),
        grpcRoute('empty', {
          hostnames: ['empty.example.com'],
          rules: [{ backendRefs: [{ name: 'empty', port: 80 }] }],
        }),
        grpcRoute('dead', {
          hostnames: ['dead.example.com'],
          rules: [{ backendRefs: [toBackend('dead')] }],
        }),
        grpcRoute('closed', { hostnames: ['closed.example.com'], rules: [{ backendRefs: toA }] }),
        policy('closed', 'GRPCRoute/closed', {
          traffic: { authorization: { action: 'Allow', policy: { matchExpressions: ['false'] } } },
        }),
        httpRoute('by-http-route', {
          hostnames: ['http.example.com'],
          rules: [{ backendRefs: toA }],
        }),
      ),
    },
  }
})

afterAll(async () => {
  for (const made of callers) made.close()
})

describe('gRPC through a GRPCRoute', () => {
  it('carries calls of every kind, with trailers', async () => {
    const cart = caller('shop.Cart', 'all.example.com')
    expect(await cart.unary('hello')).toMatchObject({
      messages: ['a:hello'],
      code: 0,
      trailers: { 'x-answered-by': 'a' },
    })
    expect((await cart.upload(['1', '2', '3'])).messages).toEqual(['a:1+2+3'])
    expect(await cart.download(3)).toMatchObject({
      messages: ['a:0', 'a:1', 'a:2'],
      code: 0,
      trailers: { 'x-answered-by': 'a' },
    })
    expect((await cart.chat(['x', 'y', 'z'])).messages).toEqual(['a:x', 'a:y', 'a:z'])
  })

  it('carries messages that are larger than any window', async () => {
    const big = 'x'.repeat(1_500_000)
    const { messages } = await caller('shop.Cart', 'all.example.com').unary(big)
    expect(messages[0]?.length).toBe(big.length + 2)
    const many = await caller('shop.Cart', 'all.example.com').download(2_000)
    expect(many.messages).toHaveLength(2_000)
  })

  it('passes errors of the backend to clients, at the start and mid-stream', async () => {
    const cart = caller('shop.Cart', 'all.example.com')
    const failure = { code: 9, details: 'not now: é', trailers: { 'x-answered-by': 'a' } }
    expect(await cart.unary('fail')).toMatchObject(failure)
    expect(await cart.chat(['x', 'fail'])).toMatchObject({ ...failure, messages: ['a:x'] })
  })

  it('matches service and method, exactly and by pattern', async () => {
    expect((await caller('shop.Cart').unary('0')).messages).toEqual(['b:0'])
    expect((await caller('shop.Cart').chat(['1'])).messages).toEqual(['a:1'])
    expect((await caller('shop.Search').download(1)).messages).toEqual(['b:0'])
    expect((await caller('other.Service').upload(['1'])).messages).toEqual(['b:1'])
    expect(b.calls.at(-1)).toMatchObject({ 'x-set': 'yes' })
  })

  it('matches headers, and reaches Services with appProtocol h2c', async () => {
    const other = caller('other.Service')
    expect((await other.unary('x', { 'x-team': 'red' })).messages).toEqual(['b:x'])
    expect((await other.unary('x', { 'x-team': 'blue' })).code).toBe(12)
  })

  it('works over TLS to backends and from clients', async () => {
    const { messages } = await caller('shop.Cart', 'secure.example.com').unary('x')
    expect(messages).toEqual(['secure:x'])
    const overTls = new GrpcCaller(
      securePort,
      'shop.Cart',
      'grpc.example.com',
      authority.certificate,
    )
    callers.push(overTls)
    expect((await overTls.chat(['1', '2'])).messages).toEqual(['a:1', 'a:2'])
  })

  it.each([
    ['a request without a route', 'nowhere.example.com', 12],
    ['a method that no rule matches', 'grpc.example.com', 12],
    ['a Service that does not exist', 'missing.example.com', 14],
    ['a Service without endpoints', 'empty.example.com', 14],
    ['a backend that is unreachable', 'dead.example.com', 14],
    ['a refusal by authorization', 'closed.example.com', 7],
  ])('answers %s with a gRPC status', async (_title, host, code) => {
    expect((await caller('other.Service', host).unary('x')).code).toBe(code)
  })

  it('forwards the cancellation of a client', async () => {
    const calls = a.calls.length
    const call = caller('shop.Cart', 'all.example.com').open()
    call.on('error', () => {})
    call.write('x')
    await new Promise((resolve) => call.once('data', resolve))
    expect(a.calls.length).toBe(calls + 1)
    call.cancel()
    await waitFor('the log line', () =>
      /shop\.Cart\/Chat.*client closed.* reason=ClientClosed/.test(running.stdout),
    )
  })

  it('reaches backends through HTTPRoutes too', async () => {
    const { messages } = await caller('shop.Cart', 'http.example.com').unary('x')
    expect(messages).toEqual(['a:x'])
  })
})
