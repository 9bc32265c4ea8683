import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { freePort, startGateway } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { handshake, sendTls, shownCertificate } from '../support/tls-client.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'
import { certificates, client, plainPort, port, running, tlsSecret, upstream } from './tls-rig.ts'

describe('TLS that ends at the gateway', () => {
  it('serves HTTP/1.1 at the listener that the SNI selects', async () => {
    const response = await sendTls(port, client('shop.example.com'), { path: '/a?b=c' })
    expect(response.status).toBe(200)
    const received = JSON.parse(response.body) as ReceivedRequest
    expect(received).toMatchObject({ path: '/a?b=c', headers: { host: 'shop.example.com' } })
    await waitFor('the access log', () =>
      /listener=shop .*http\.path=\/a\?b=c .*protocol=https/.test(running.stdout),
    )
  })

  it('counts handshakes, connections and requests as https', async () => {
    const stats = /metrics: (http:\S+)/.exec(running.stderr)?.[1] ?? ''
    const text = await (await fetch(stats)).text()
    const labels = `bind="${port}/default/edge",gateway="default/edge",listener="shop",protocol="https"`
    expect(text).toContain(`sluice_tls_handshake_duration_seconds_count{${labels}}`)
    expect(text).toMatch(/sluice_downstream_connections_total\{[^}]*protocol="https"\} [1-9]/)
    expect(text).toMatch(/sluice_requests_total\{[^}]*protocol="https"[^}]*listener="shop"/)
  })

  it('presents the certificate of the exact name before that of a wildcard', async () => {
    const { shop, wild } = certificates
    expect(await shownCertificate(port, client('shop.example.com'))).toBe(shop.fingerprint)
    expect(await shownCertificate(port, client('SHOP.example.com'))).toBe(shop.fingerprint)
    expect(await shownCertificate(port, client('a.wild.example.com'))).toBe(wild.fingerprint)
    const response = await sendTls(port, client('b.wild.example.com'))
    expect(response.status).toBe(200)
  })

  it('ignores a trailing dot in the SNI and in the Host', async () => {
    const dotted = client('shop.example.com.')
    expect(await shownCertificate(port, dotted)).toBe(certificates.shop.fingerprint)
    for (const host of ['shop.example.com', 'shop.example.com.', `SHOP.example.com.:${port}`]) {
      const response = await sendTls(port, dotted, { host })
      expect(response.status, host).toBe(200)
      // What the client wrote is what the backend reads.
      expect(JSON.parse(response.body)).toMatchObject({ headers: { host } })
    }
    const host = 'both.example.com.'
    expect((await sendTls(port, client('shop.example.com'), { host })).status).toBe(421)
    expect((await sendTls(port, dotted, { host: 'a.wild.example.com.' })).status).toBe(421)
    expect((await sendTls(port, client('a.wild.example.com.'), { host })).status).toBe(421)
    for (const none of ['.', '..', 'shop.example.com..', 'shop.example.com..:443']) {
      expect((await sendTls(port, dotted, { host: none })).status, none).toBe(400)
    }
  })

  const strangers = ['other.example.com', 'wild.example.com', 'x.shop.example.com']
  it.each([...strangers, 'shop.example.com..', '.', ''])(
    'closes the handshake for the name "%s", which no listener has',
    async (servername) => {
      await expect(handshake(port, client(servername))).rejects.toThrow()
    },
  )

  it('[version.tls] accepts TLS 1.2 and 1.3 and nothing older', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const only = { minVersion: version, maxVersion: version }
      const socket = await handshake(port, client('shop.example.com'), only)
      expect(socket.getProtocol()).toBe(version)
      socket.destroy()
    }
    for (const version of ['TLSv1', 'TLSv1.1'] as const) {
      const ciphers = 'DEFAULT@SECLEVEL=0'
      const only = { minVersion: version, maxVersion: version, ciphers }
      const failed = handshake(port, client('shop.example.com'), only)
      await expect(failed).rejects.toThrow(/protocol version/)
    }
  })

  it('negotiates h2 or http/1.1 by ALPN, and nothing else', async () => {
    const offer = (...ALPNProtocols: string[]) =>
      handshake(port, client('shop.example.com'), { ALPNProtocols })
    for (const [offered, agreed] of [
      [['http/1.1', 'h2'], 'h2'],
      [['http/1.1'], 'http/1.1'],
    ] as const) {
      const socket = await offer(...offered)
      expect(socket.alpnProtocol).toBe(agreed)
      socket.destroy()
    }
    await expect(offer('spdy/3')).rejects.toThrow(/no application protocol/)
  })

  it('closes plaintext on a TLS port', async () => {
    const socket = connect({ host: '127.0.0.1', port })
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nhost: shop.example.com\r\n\r\n')
    await new Promise((resolve) => socket.once('close', resolve))
    expect(text).not.toMatch(/HTTP/)
  })

  it('selects the certificate whose key type the client supports', async () => {
    const { ec, rsa } = certificates
    const shown = (ciphers: string) =>
      shownCertificate(port, client('both.example.com'), { ciphers, maxVersion: 'TLSv1.2' })
    expect(await shown('ECDHE-ECDSA-AES128-GCM-SHA256')).toBe(ec.fingerprint)
    expect(await shown('ECDHE-RSA-AES128-GCM-SHA256')).toBe(rsa.fingerprint)
  })

  it('answers 421 if the Host belongs to another listener than the SNI', async () => {
    const host = 'both.example.com'
    expect((await sendTls(port, client('shop.example.com'), { host })).status).toBe(421)
    expect((await sendTls(port, client('a.wild.example.com'), { host })).status).toBe(421)
    const sameListener = await sendTls(port, client('a.wild.example.com'), {
      host: 'b.wild.example.com:444',
    })
    expect(sameListener.status).toBe(200)
    const nobody = await sendTls(port, client('shop.example.com'), { host: 'nobody.example.org' })
    expect(nobody.status).toBe(404)
  })

  it('keeps the scheme in redirects, and sends plaintext to https without a port', async () => {
    const moved = await sendTls(port, client('shop.example.com'), { path: '/moved' })
    expect(moved.headers.location).toBe(`https://shop.example.com:${port}/here`)
    const upgraded = await running.send(plainPort, { host: 'shop.example.com', path: '/x' })
    expect(upgraded).toMatchObject({ status: 302 })
    expect(upgraded.headers.location).toBe('https://shop.example.com/x')
  })

  it('does not serve HTTPS listeners in plaintext on other ports', async () => {
    const { length } = upstream.received
    await running.send(plainPort, { host: 'both.example.com' })
    expect(upstream.received).toHaveLength(length)
  })
})

describe('a listener port', () => {
  it('changes from plaintext to TLS and back on both workers, which share sessions', async () => {
    const turning = await freePort()
    const { certificate, key } = certificates.shop
    const secret = tlsSecret('shop', { certificate, key, fingerprint: '' })
    const listener = (protocol: string) => ({
      name: 'turning',
      port: turning,
      protocol,
      ...(protocol === 'HTTPS' && { tls: { certificateRefs: [{ name: 'shop' }] } }),
    })
    const all = (protocol: string) =>
      manifest(
        gateway(turning, { listeners: [listener(protocol)] }),
        staticBackend('main', upstream.port),
        httpRoute('echo', { rules: [{ backendRefs: [toBackend('main')] }] }),
        secret,
      )
    const gw = await startGateway({
      manifests: { 'all.yaml': all('HTTP') },
      args: ['--workers', '2'],
    })
    const plain = () => gw.send(turning).catch(() => undefined)
    const secure = () => sendTls(turning, client('shop.example.com')).catch(() => undefined)
    try {
      expect((await plain())?.status).toBe(200)
      expect(await secure()).toBeUndefined()
      gw.write('all.yaml', all('HTTPS'))
      await waitFor('TLS on every worker', async () => (await plain()) === undefined)
      await waitFor('TLS', async () => (await secure())?.status === 200)
      const shop = client('shop.example.com')
      const first = await handshake(turning, shop)
      const session = new Promise<Buffer>((resolve) => first.resume().once('session', resolve))
      const again = { session: await session }
      first.destroy()
      // The system spreads them: none of so many would meet the other worker once in 30,000 runs.
      const sockets = await Promise.all(
        Array.from({ length: 16 }, () => handshake(turning, shop, again)),
      )
      expect(sockets.every((socket) => socket.isSessionReused())).toBe(true)
      for (const socket of sockets) socket.destroy()
      gw.write('all.yaml', all('HTTP'))
      await waitFor('plaintext', async () => (await plain())?.status === 200)
      await waitFor('plaintext on every worker', async () => (await secure()) === undefined)
    } finally {
      await gw.dispose()
    }
  })
})
