import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/gateway.ts'
import { manifest, policy } from '../support/manifests.ts'
import { handshake } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { agreed, client, ended, frontend, open, port, running } from './frontend-rig.ts'

/** Whether a handshake on the connection succeeds. */
function canBegin(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve(false)
    socket.once('close', () => resolve(false))
    const secure = connectTls({ socket, ...client() })
    secure.on('error', () => resolve(false))
    secure.once('secureConnect', () => {
      resolve(true)
      secure.destroy()
    })
  })
}

describe('frontend.tls', () => {
  it('[FrontendTLS.minProtocolVersion] refuses lower versions', async () => {
    const older = { maxVersion: 'TLSv1.2' }
    expect((await agreed(port.https, older))[0]).toBe('TLSv1.2')
    await frontend({ tls: { minProtocolVersion: '1.3' } }, async () =>
      String((await agreed(port.https, older))[0]).includes('protocol version'),
    )
    expect((await agreed(port.https))[0]).toBe('TLSv1.3')
    expect((await agreed(port.plainTls, older))[0]).toBe('TLSv1.2')
  })

  it('[FrontendTLS.maxProtocolVersion] does not offer higher versions', async () => {
    await frontend(
      { tls: { maxProtocolVersion: '1.2' } },
      async () => (await agreed(port.https))[0] === 'TLSv1.2',
    )
    expect((await agreed(port.plainTls))[0]).toBe('TLSv1.3')
  })

  it('[FrontendTLS.cipherSuites] negotiates the listed suites only', async () => {
    const suite = 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256'
    await frontend({ tls: { cipherSuites: [suite] } }, async () =>
      (await agreed(port.https)).includes(suite),
    )
    expect((await agreed(port.https))[0]).toBe('TLSv1.2')
    const other = { ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384', maxVersion: 'TLSv1.2' }
    expect((await agreed(port.https, other))[0]).toMatch(/handshake failure/)
    const newest = 'TLS13_AES_128_GCM_SHA256'
    await frontend({ tls: { cipherSuites: [newest] } }, async () =>
      (await agreed(port.https)).includes('TLS_AES_128_GCM_SHA256'),
    )
    expect((await agreed(port.https, { maxVersion: 'TLSv1.2' }))[0]).toMatch(/protocol version/)
  })

  it('[FrontendTLS.alpnProtocols] offers the listed protocols, h2 and http/1.1 by default', async () => {
    const offer = { ALPNProtocols: ['h2', 'http/1.1'] }
    expect((await agreed(port.plainTls, offer))[2]).toBe('h2')
    await frontend(
      { tls: { alpnProtocols: ['http/1.1'] } },
      async () => (await agreed(port.https, offer))[2] === 'http/1.1',
    )
    expect((await agreed(port.https, { ALPNProtocols: ['h2'] }))[0]).toMatch(/application protocol/)
    // What is not offered is not spoken either, whether or not something else was agreed on.
    const begun = async (to: number, options: object) => {
      const socket = await handshake(to, client(), options)
      socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
      const [first] = (await once(socket, 'data')) as [Buffer]
      socket.destroy()
      return first.toString('latin1', 0, 12)
    }
    const http1 = { ALPNProtocols: ['http/1.1'] }
    expect(await begun(port.https, {})).toBe('HTTP/1.1 505')
    expect(await begun(port.https, http1)).toBe('HTTP/1.1 505')
    expect(await begun(port.plainTls, http1)).toBe('HTTP/1.1 505')
    // SETTINGS of the server.
    expect((await begun(port.plainTls, {})).charCodeAt(3)).toBe(4)
  })

  it('[FrontendTLS.handshakeTimeout] closes a connection whose handshake takes longer', async () => {
    // The version shows when the policy is in force.
    const spec = { tls: { handshakeTimeout: '200ms', maxProtocolVersion: '1.2' } }
    await frontend(spec, async () => (await agreed(port.https))[0] === 'TLSv1.2')
    await waitFor('a connection that outlives the limited one', async () => {
      // With the default of 15 s for both, the older of the two would end first.
      const patient = await open(port.plainTls)
      await ended(await open(port.https))
      return canBegin(patient)
    })
  })

  it('fails closed and reports it if no cipher suite is left for the allowed versions', async () => {
    await frontend(
      {
        tls: { minProtocolVersion: '1.3', cipherSuites: ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384'] },
      },
      async () => (await running.send(port.http)).status === 500,
    )
    const condition = await running.condition('GatewayPolicy', 'frontend', 'Accepted', 'False')
    expect(condition.message).toContain(
      'spec.frontend.tls.cipherSuites: no listed suite belongs to a TLS version that is allowed (1.3 to 1.3)',
    )
    expect((await running.send(port.plain)).status).toBe(200)
  })
})

describe('a frontend policy', () => {
  const named = async (name: string, target: string, spec: object) => {
    running.write(`${name}.yaml`, manifest(policy(name, target, { frontend: spec })))
    const condition = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
    running.remove(`${name}.yaml`)
    return condition.message
  }

  it.each([
    ['[FrontendTCP.atLeastOneOf]', 'tcp', 'keepalive'],
    ['[FrontendTLS.atLeastOneOf]', 'tls', 'handshakeTimeout'],
    ['[FrontendHTTP.atLeastOneOf]', 'http', 'maxBufferSize'],
  ])('%s is refused if %s has no setting', async (_id, field, example) => {
    const message = await named(`empty-${field}`, 'Gateway/plain', { [field]: {} })
    expect(message).toContain(`spec.frontend.${field}`)
    expect(message).toContain(example)
  })

  it('[PolicySpec.frontend] is refused on anything but a whole Gateway', async () => {
    const spec = { http: { http1MaxHeaders: 1 } }
    expect(await named('listener', 'Gateway/plain#http', spec)).toContain('without sectionName')
    const set = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'ListenerSet',
      metadata: { name: 'set' },
      spec: {
        parentRef: { name: 'plain' },
        listeners: [{ name: 'more', port: await freePort(), protocol: 'HTTP' }],
      },
    }
    running.write('set.yaml', manifest(set))
    expect(await named('set', 'ListenerSet/set', spec)).toContain(
      'cannot target ListenerSet; use Gateway',
    )
    await waitFor('traffic as before', async () => (await running.send(port.plain)).status === 200)
  })
})
