/** Credentials of clients on their way to model providers: removed, unless `passthrough` keeps the vendor's own. */
import { describe, expect, it } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { canary, port, sessions } from './client-credentials-rig.ts'

describe('realtime sessions', () => {
  const begin = async (name: string, path: string, protocols: string) => {
    const headers = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
      'sec-websocket-protocol': protocols,
      cookie: canary,
    }
    await upgrade(`/${name}${path}`, headers)
    const [session] = await waitFor(
      'the session',
      () => sessions.sessions.length > 0 && sessions.sessions,
    )
    return session
  }

  const upgrade = (path: string, headers: Record<string, string>) =>
    new Promise<void>((resolve, reject) => {
      import('node:http').then(({ request }) => {
        const outgoing = request({ host: '127.0.0.1', port: port(), path, headers })
        outgoing.once('upgrade', (_, socket) => {
          socket.destroy()
          resolve()
        })
        outgoing.once('response', (response) => {
          response.resume()
          resolve()
        })
        outgoing.once('error', reject)
        outgoing.end()
      }, reject)
    })

  const offered = `realtime, openai-insecure-api-key.${canary}, openai-beta.realtime-v1`

  it.each(['talk', 'talk-raw'])(
    'of %s do not forward the key that a browser offers as a subprotocol',
    async (name) => {
      const session = await begin(name, `/v1/realtime?model=m&api-key=${canary}`, offered)
      expect(session?.path).toBe('/v1/realtime?model=m')
      expect(session?.headers.authorization).toBe('Bearer gateway-key')
      expect(session?.headers['sec-websocket-protocol']).toBe('realtime, openai-beta.realtime-v1')
      expect(JSON.stringify(session)).not.toContain(canary)
    },
  )

  it('forward that key in Authorization with passthrough', async () => {
    const session = await begin('talk-pass', '/v1/realtime?model=m', offered)
    expect(session?.headers.authorization).toBe(`Bearer ${canary}`)
    expect(session?.headers['sec-websocket-protocol']).toBe('realtime, openai-beta.realtime-v1')
  })
})
