import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { freePort, startGateway } from '../support/gateway.ts'
import { gateway, manifest } from '../support/manifests.ts'
import { handshake, ticketKeyOf } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { admin, certificates, client, https, port, tlsSecret } from './tls-rig.ts'

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

  it('open tickets of the current and the previous key, and none older', async () => {
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

  it('rotate once per session lifetime, after which sessions end', async () => {
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
