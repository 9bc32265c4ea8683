import { describe, expect, it } from 'vitest'
import { byGrpc, byHttp, fresh, running, send } from './tracing-rig.ts'

describe('spans over gRPC [Tracing.protocol=GRPC] [Tracing.protocol]', () => {
  it('arrive, also after a first failure, and bear the name that an attribute gives', async () => {
    const path = fresh('/api')
    await send('grpc', { method: 'POST', path })
    const { span, attributes, resource } = await byGrpc.server(path)
    expect(span.name).toBe('named POST')
    expect(attributes).not.toHaveProperty(['span.name'])
    expect(attributes).toMatchObject({ 'http.method': 'POST' })
    expect(resource).toMatchObject({ 'service.name': 'grpc' })
  })
})

describe('a collector that is not there', () => {
  it('holds nothing up', async () => {
    for (let i = 0; i < 20; i++) expect((await send('down', { path: '/x' })).status).toBe(200)
  })

  it('[Tracing.backendRef] is named in the status, and requests go on', async () => {
    expect((await send('lost', { path: '/x' })).status).toBe(200)
    const status = await running.status('GatewayPolicy', 'lost')
    expect(JSON.stringify(status)).toContain(
      'spec.frontend.tracing.backendRef: GatewayBackend default/absent does not exist',
    )
  })
})

describe('at the end of the process', () => {
  it('what waits is sent', async () => {
    const path = fresh('/api')
    await send('http', { path, headers: { sample: '1' } })
    await running.stop()
    await byHttp.server(path)
  })
})
