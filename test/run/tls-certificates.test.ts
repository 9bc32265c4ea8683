import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { gateway, manifest } from '../support/manifests.ts'
import { handshake, sendTls, shownCertificate } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  admin,
  base64,
  certificates,
  client,
  grant,
  https,
  port,
  running,
  tlsSecret,
} from './tls-rig.ts'

async function listenerCondition(name: string, type: string): Promise<unknown> {
  const status = await running.status('Gateway', 'edge')
  const listeners = status?.listeners as { name: string; conditions: { type: string }[] }[]
  const listener = listeners.find((entry) => entry.name === name)
  return listener?.conditions.find((entry) => entry.type === type)
}

describe('certificates of listeners', () => {
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

  it('that are missing or do not match are reported, and fail the handshake', async () => {
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

  it('in another namespace need a grant, and stop being served without it', async () => {
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

  it('are removed and restored with their Secret, without affecting others', async () => {
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

  it('are read from the files again after a restart', async () => {
    await running.stop()
    await running.start()
    const { shop } = certificates
    expect(await shownCertificate(port, client('shop.example.com'))).toBe(shop.fingerprint)
  })

  it('are served once their unreadable file becomes readable', async () => {
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
    const files = readdirSync(running.folder, { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile() && file.parentPath !== running.manifests)
      .map((file) => join(file.parentPath, file.name))
    expect(files).toContain(running.logFile)
    const places = files.map((file) => readFileSync(file, 'latin1'))
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
