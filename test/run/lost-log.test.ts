/** A log file that is lost while a gateway uses it: reported at once and at the next start. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream()
const port = await freePort()
const route = (hostname: string) =>
  manifest(httpRoute('r', { hostnames: [hostname], rules: [{ backendRefs: [toBackend('main')] }] }))
const running = useGateway(() => ({
  manifests: {
    'base.yaml': manifest(gateway(port), staticBackend('main', upstream.port)),
    'route.yaml': route('a.example.com'),
  },
}))
const isServed = async (host: string) => (await running.send(port, { host })).status === 200
const deleted = 'was deleted or replaced'

describe('a log file', () => {
  it('is marked while it is in use, and not after a stop', async () => {
    expect(existsSync(`${running.logFile}.open`)).toBe(true)
    await running.stop()
    expect(existsSync(`${running.logFile}.open`)).toBe(false)
    await running.start()
    expect(running.stderr).not.toContain('lost')
  })

  it('whose process was killed is continued without a message', async () => {
    await running.kill()
    await running.start()
    expect(running.stderr).not.toContain('lost')
    expect(await isServed('a.example.com')).toBe(true)
  })

  it('without its -wal after a kill is reported at the next start', async () => {
    await running.kill()
    rmSync(`${running.logFile}-wal`)
    await running.start()
    expect(running.stderr).toContain('events.db-wal is missing')
    expect(await isServed('a.example.com')).toBe(true)
  })

  it.each([
    ['deleted', () => rmSync(running.logFile)],
    [
      'replaced',
      () => {
        rmSync(running.logFile)
        writeFileSync(running.logFile, '')
      },
    ],
  ])('that is %s is reported at once, once, and at the next start', async (_, lose) => {
    lose()
    await waitFor('the message', () => running.stderr.includes(deleted))
    running.write('route.yaml', route('b.example.com'))
    await running.sendUntil(port, { host: 'b.example.com' }, ({ status }) => status === 200)
    expect(running.stderr.split(deleted)).toHaveLength(2)
    await running.stop()
    await running.start()
    expect(running.stderr).toContain(`${running.logFile} ${deleted} while a gateway used it`)
    expect(await isServed('b.example.com')).toBe(true)
  })
})
