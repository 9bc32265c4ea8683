import { describe, expect, it } from 'vitest'
import { byGrpc, byHttp, fresh, running, send } from './tracing-rig.ts'

describe('spans over gRPC [Tracing.protocol=GRPC] [Tracing.protocol]', () => {
  it('arrive, also after a first failure, with the name that an attribute sets', async () => {
    const path = fresh('/api')
    await send('grpc', { method: 'POST', path })
    const { span, attributes, resource } = await byGrpc.server(path)
    expect(span.name).toBe('named POST')
    expect(attributes).not.toHaveProperty(['span.name'])
    expect(attributes).toMatchObject({ 'http.method': 'POST' })
    expect(resource).toMatchObject({ 'service.name': 'grpc' })
  })
})

describe('an unreachable trace collector', () => {
  it('does not delay requests', async () => {
    for (let i = 0; i < 20; i++) expect((await send('down', { path: '/x' })).status).toBe(200)
  })

  it('[Tracing.backendRef] is reported in the status, and requests still pass', async () => {
    expect((await send('lost', { path: '/x' })).status).toBe(200)
    const status = await running.status('GatewayPolicy', 'lost')
    expect(JSON.stringify(status)).toContain(
      'spec.frontend.tracing.backendRef: GatewayBackend default/absent does not exist',
    )
  })
})

describe('a process that stops', () => {
  it('sends the spans that are still queued', async () => {
    const path = fresh('/api')
    await send('http', { path, headers: { sample: '1' } })
    await running.stop()
    await byHttp.server(path)
  })
})
