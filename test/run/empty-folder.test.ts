/** What a gateway prints if its manifests have nothing to serve. */
import { describe, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, manifest, routeByHost, staticBackend, toBackend } from '../support/manifests.ts'

const port = await freePort()

describe('a gateway on a folder without objects', () => {
  const running = useGateway(() => ({ manifests: { 'notes.txt': 'nothing to read' } }))

  it('says that no object was found, and serves objects that are added later', async () => {
    expect(running.stderr).toContain(`warning: no object was found in ${running.manifests}: `)
    running.write('all.yaml', manifest(gateway(port), routeByHost('shop', toBackend('none'))))
    await running.sendUntil(port, { host: 'nowhere.example' }, ({ status }) => status === 404)
  })
})

describe('a gateway on a folder without a Gateway', () => {
  const running = useGateway(() => ({ manifests: [staticBackend('main', 1)] }))

  it('says that no Gateway was found', () => {
    expect(running.stderr).toContain(`warning: no Gateway was found in ${running.manifests}: `)
  })
})

describe('a gateway on a folder whose only Gateway has another class', () => {
  const running = useGateway(() => ({ manifests: [gateway(port, { gatewayClassName: 'mine' })] }))

  it('says that no port is open, and names its own class', () => {
    expect(running.stderr).toContain(
      'warning: Gateway default/edge: gatewayClassName mine is no class of this gateway: no port is open. The class that needs no manifest is agentgateway.',
    )
  })
})

describe('a gateway on a folder with a Gateway', () => {
  const running = useGateway(() => ({ manifests: [gateway(port)] }))

  it('says nothing about missing objects', () => {
    expect(running.stderr).not.toContain('was found in')
  })
})
