import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Certificate } from '../support/certificates.ts'
import { useAuthority, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, startGateway } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { handshake, sendTls, shownCertificate, ticketKeyOf } from '../support/tls-client.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

function tlsSecret(name: string, { certificate, key }: Certificate, namespace = 'default') {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(certificate), 'tls.key': base64(key) },
  }
}

const https = (name: string, hostname: string | undefined, ...certificateRefs: object[]) => ({
  name,
  port,
  protocol: 'HTTPS',
  ...(hostname !== undefined && { hostname }),
  tls: { certificateRefs },
})

const grant = (kind: string) => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'ReferenceGrant',
  metadata: { name: 'certificates', namespace: 'vault' },
  spec: {
    from: [{ group: 'gateway.networking.k8s.io', kind, namespace: 'default' }],
    to: [{ group: '', kind: 'Secret' }],
  },
})

const client = (servername: string) => ({ ca: authority.certificate, servername })

async function listenerCondition(name: string, type: string): Promise<unknown> {
  const status = await running.status('Gateway', 'edge')
  const listeners = status?.listeners as { name: string; conditions: { type: string }[] }[]
  const listener = listeners.find((entry) => entry.name === name)
  return listener?.conditions.find((entry) => entry.type === type)
}

const authority = useAuthority()
const upstream = useUpstream('main')
const port = await freePort()
const plainPort = await freePort()
const certificates = {
  shop: authority.issue(['shop.example.com']),
  wild: authority.issue(['*.wild.example.com']),
  ec: authority.issue(['both.example.com'], 'ec'),
  rsa: authority.issue(['both.example.com'], 'rsa'),
  old: authority.issue(['rotating.example.com']),
  new: authority.issue(['rotating.example.com']),
  far: authority.issue(['far.example.com']),
}
const running = useGateway(() => {
  const { shop, wild, ec, rsa, old, far } = certificates
  return {
    args: ['--admin-address', '127.0.0.1:0'],
    manifests: {
      'all.yaml': manifest(
        gateway(port, {
          listeners: [
            { name: 'http', port: plainPort, protocol: 'HTTP' },
            https('shop', 'shop.example.com', { name: 'shop' }),
            https('wild', '*.wild.example.com', { name: 'wild' }),
            https('both', 'both.example.com', { name: 'rsa' }, { name: 'ec' }),
            https('rotating', 'rotating.example.com', { name: 'rotating' }),
            https('far', 'far.example.com', { name: 'far', namespace: 'vault' }),
            https('missing', 'missing.example.com', { name: 'absent' }),
            https('mismatched', 'mismatched.example.com', { name: 'mismatched' }),
          ],
        }),
        staticBackend('main', upstream.port),
        httpRoute('echo', {
          parentRefs: ['shop', 'wild', 'both', 'rotating', 'far', 'missing', 'mismatched'].map(
            (sectionName) => ({ name: 'edge', sectionName }),
          ),
          rules: [{ backendRefs: [toBackend('main')] }],
        }),
        httpRoute('moved', {
          parentRefs: [{ name: 'edge', sectionName: 'shop' }],
          rules: [
            {
              matches: [{ path: { value: '/moved' } }],
              filters: [
                {
                  type: 'RequestRedirect',
                  requestRedirect: { path: { type: 'ReplaceFullPath', replaceFullPath: '/here' } },
                },
              ],
            },
          ],
        }),
        httpRoute('upgrade', {
          parentRefs: [{ name: 'edge', sectionName: 'http' }],
          rules: [{ filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https' } }] }],
        }),
      ),
      'secrets.yaml': manifest(
        tlsSecret('shop', shop),
        tlsSecret('wild', wild),
        tlsSecret('ec', ec),
        tlsSecret('rsa', rsa),
        tlsSecret('far', far, 'vault'),
        // Of use to nobody until a test refers to it.
        tlsSecret('spare', old),
        tlsSecret('mismatched', { ...shop, key: wild.key }),
      ),
      'rotating.yaml': manifest(tlsSecret('rotating', old)),
      'grant.yaml': manifest(grant('Gateway')),
    },
  }
})
const admin = () => /admin: (http:\S+)/.exec(running.stderr)?.[1] ?? ''

describe('TLS that ends at the gateway', () => {
  it('serves HTTP/1.1 behind it, to the listener that the name chooses', async () => {
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

  it('shows the certificate of the exact name, then of the wildcard', async () => {
    const { shop, wild } = certificates
    expect(await shownCertificate(port, client('shop.example.com'))).toBe(shop.fingerprint)
    expect(await shownCertificate(port, client('SHOP.example.com'))).toBe(shop.fingerprint)
    expect(await shownCertificate(port, client('a.wild.example.com'))).toBe(wild.fingerprint)
    const response = await sendTls(port, client('b.wild.example.com'))
    expect(response.status).toBe(200)
  })

  it('takes the dot of an absolute name for none, in the handshake and in the Host', async () => {
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

  it('[version.tls] speaks TLS 1.2 and 1.3 and nothing older', async () => {
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

  it('agrees on h2 or http/1.1 by ALPN, and on nothing else', async () => {
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

  it('has certificates of several key types on one listener, and takes what the client can verify', async () => {
    const { ec, rsa } = certificates
    const shown = (ciphers: string) =>
      shownCertificate(port, client('both.example.com'), { ciphers, maxVersion: 'TLSv1.2' })
    expect(await shown('ECDHE-ECDSA-AES128-GCM-SHA256')).toBe(ec.fingerprint)
    expect(await shown('ECDHE-RSA-AES128-GCM-SHA256')).toBe(rsa.fingerprint)
  })

  it('answers 421 where the Host belongs to another listener than the name', async () => {
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

describe('keys of session tickets', () => {
  const begin = async (to: number) => {
    const socket = await handshake(to, client('shop.example.com'))
    const [session] = (await once(socket.resume(), 'session')) as [Buffer]
    socket.destroy()
    return { session, key: ticketKeyOf(session) }
  }
  /** The next session under another key. */
  const beginWithout = (to: number, key: string) =>
    waitFor('another key', async () => {
      const begun = await begin(to)
      return begun.key !== key && begun
    })
  const isResumed = async (to: number, session: Buffer) => {
    const socket = await handshake(to, client('shop.example.com'), { session })
    const isReused = socket.isSessionReused()
    socket.destroy()
    return isReused
  }

  it('open what was sealed by the last one or the one before, and nothing older', async () => {
    const rotate = () => fetch(`${admin()}/rotate_tls_session_keys`, { method: 'POST' })
    const first = await begin(port)
    expect((await rotate()).status).toBe(200)
    const second = await beginWithout(port, first.key)
    expect(await isResumed(port, first.session)).toBe(true)
    await rotate()
    const third = await beginWithout(port, second.key)
    expect(await isResumed(port, first.session)).toBe(false)
    expect(await isResumed(port, second.session)).toBe(true)
    expect(new Set([first.key, second.key, third.key]).size).toBe(3)
  })

  it('change by themselves as often as sessions may live, and so do sessions end', async () => {
    const own = await freePort()
    const gw = await startGateway({
      env: { SLUICE_TLS_SESSION_LIFETIME: '2s' },
      manifests: {
        'all.yaml': manifest(
          gateway(own, {
            listeners: [{ ...https('shop', undefined, { name: 'shop' }), port: own }],
          }),
          tlsSecret('shop', certificates.shop),
        ),
      },
    })
    try {
      let last = await begin(own)
      const next = await waitFor('another key', async () => {
        const begun = await begin(own)
        if (begun.key !== last.key) return begun
        last = begun
        return false
      })
      expect(await isResumed(own, last.session)).toBe(true)
      await beginWithout(own, next.key)
      expect(await isResumed(own, last.session)).toBe(false)
    } finally {
      await gw.dispose()
    }
  })
})

describe('certificates', () => {
  it('are renewed without closing a connection or a port', async () => {
    const { old, new: fresh } = certificates
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ...client('rotating.example.com') })
    const get = () =>
      new Promise<{ status: number | undefined; localPort: number | undefined }>(
        (resolve, reject) => {
          const headers = { host: 'rotating.example.com' }
          const outgoing = request({ host: '127.0.0.1', port, agent, headers }, (response) => {
            const { localPort } = response.socket
            response.resume().once('end', () => resolve({ status: response.statusCode, localPort }))
          })
          outgoing.once('error', reject).end()
        },
      )
    const before = await get()
    expect(await shownCertificate(port, client('rotating.example.com'))).toBe(old.fingerprint)
    running.write('rotating.yaml', manifest(tlsSecret('rotating', fresh)))
    await waitFor('the new certificate', async () => {
      const shown = await shownCertificate(port, client('rotating.example.com'))
      return shown === fresh.fingerprint
    })
    expect(await get()).toEqual({ status: 200, localPort: before.localPort })
    agent.destroy()
    expect(running.stderr).not.toMatch(/port \d+ .*closed/)
  })

  it('that are missing or do not fit are told, and fail the handshake', async () => {
    expect(await listenerCondition('missing', 'ResolvedRefs')).toMatchObject({
      status: 'False',
      reason: 'InvalidCertificateRef',
      message: 'Secret default/absent does not exist',
    })
    expect(await listenerCondition('mismatched', 'ResolvedRefs')).toMatchObject({
      reason: 'InvalidCertificateRef',
      message: 'Secret default/mismatched: tls.key is not the key of the certificate in tls.crt',
    })
    for (const name of ['missing', 'mismatched']) {
      expect(await listenerCondition(name, 'Programmed')).toMatchObject({ status: 'False' })
      await expect(handshake(port, client(`${name}.example.com`))).rejects.toThrow()
    }
    expect(await listenerCondition('shop', 'Programmed')).toMatchObject({ status: 'True' })
  })

  it('in another namespace need a grant, and go with it', async () => {
    const { far } = certificates
    expect(await shownCertificate(port, client('far.example.com'))).toBe(far.fingerprint)
    running.write('grant.yaml', manifest(grant('HTTPRoute')))
    await waitFor('the handshake to fail', () =>
      handshake(port, client('far.example.com')).then(
        (socket) => {
          socket.destroy()
          return false
        },
        () => true,
      ),
    )
    expect(await listenerCondition('far', 'ResolvedRefs')).toMatchObject({
      reason: 'RefNotPermitted',
    })
    running.write('grant.yaml', manifest(grant('Gateway')))
    await waitFor('the grant', () =>
      shownCertificate(port, client('far.example.com')).catch(() => undefined),
    )
  })

  it('go with their Secret and come back with it, and no other goes along', async () => {
    const { new: fresh, old } = certificates
    const shown = () =>
      shownCertificate(port, client('rotating.example.com')).catch(() => 'no handshake')
    running.remove('rotating.yaml')
    await waitFor('the handshake to fail', async () => (await shown()) === 'no handshake')
    running.write('rotating.yaml', manifest(tlsSecret('rotating', fresh)))
    await waitFor('the certificate', async () => (await shown()) === fresh.fingerprint)
    const file = JSON.stringify(
      gateway(port, { listeners: [https('x', undefined, { name: 'spare' })] }, 'x'),
    )
    running.write('another.yaml', file)
    await waitFor('a new listener with a value of old', async () => {
      const found = await shownCertificate(port, client('x.test'), {
        rejectUnauthorized: false,
      }).catch(() => 'no handshake')
      return found === old.fingerprint
    })
    running.remove('another.yaml')
  })

  it('come again from the files after a restart', async () => {
    await running.stop()
    await running.start()
    const { shop } = certificates
    expect(await shownCertificate(port, client('shop.example.com'))).toBe(shop.fingerprint)
  })

  it('come late where their file cannot be read at the start', async () => {
    const { shop, wild, ec, rsa, far } = certificates
    const whole = readFileSync(join(running.manifests, 'secrets.yaml'), 'utf8')
    await running.stop()
    running.write('secrets.yaml', 'kind: [')
    await running.start()
    await expect(handshake(port, client('shop.example.com'))).rejects.toThrow()
    const told = await waitFor('the status', async () => {
      const condition = await listenerCondition('shop', 'Programmed')
      return JSON.stringify(condition).includes('"False"') && condition
    })
    expect(told).toMatchObject({ reason: 'Invalid', message: expect.stringContaining('not known') })
    running.write('secrets.yaml', whole)
    await waitFor('the value', () =>
      shownCertificate(port, client('shop.example.com')).catch(() => undefined),
    )
    expect((await sendTls(port, client('shop.example.com'))).status).toBe(200)
    await waitFor('the status', async () => {
      const condition = await listenerCondition('shop', 'Programmed')
      return JSON.stringify(condition).includes('"True"')
    })
    const others = { 'a.wild': wild, far }
    for (const [name, { fingerprint }] of Object.entries(others)) {
      expect(await shownCertificate(port, client(`${name}.example.com`))).toBe(fingerprint)
    }
    expect([ec, rsa, shop].map(({ fingerprint }) => fingerprint)).toContain(
      await shownCertificate(port, client('both.example.com')),
    )
  })

  it('leave no key in the state folder, the logs or the dump of the configuration', async () => {
    const dump = await (await fetch(`${admin()}/config_dump`)).text()
    expect(JSON.parse(dump).resources.secret.length).toBeGreaterThan(0)
    const files = readdirSync(running.folder).filter((file) => file !== 'manifests')
    expect(files).toContain('events.db')
    const places = files.map((file) => readFileSync(join(running.folder, file), 'latin1'))
    const everything = [dump, running.stdout, running.stderr, ...places].join('\n')
    expect(everything).toContain('kubernetes.io/tls')
    for (const { key, certificate } of Object.values(certificates)) {
      for (const text of [key, certificate]) {
        const line = text.split('\n')[1] ?? ''
        expect(line.length).toBeGreaterThan(40)
        expect(everything).not.toContain(line)
        expect(everything).not.toContain(base64(text).slice(60, 120))
      }
    }
  })
})

describe('a port', () => {
  it('turns from plaintext to TLS and back, with both workers, which share sessions', async () => {
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
