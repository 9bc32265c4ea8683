/** A log whose file cannot be written while a gateway runs, as on a full disk. */
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
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
const status = async (host: string) => (await running.send(port, { host })).status

/** Replaces the host of the only route, and waits until only the new one is served. */
async function moveTo(host: string, before: string): Promise<void> {
  running.write('route.yaml', route(host))
  await running.sendUntil(port, { host }, (answer) => answer.status === 200)
  expect(await status(before)).toBe(404)
}

describe('a log that cannot be written', () => {
  it('continues in memory, so that changes and removals take effect', async () => {
    const disk = new DatabaseSync(running.logFile, { timeout: 5_000 })
    disk.exec(
      "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk is full'); END",
    )
    await moveTo('b.example.com', 'a.example.com')
    await moveTo('c.example.com', 'b.example.com')
    expect(running.stderr.match(/Event log continues in memory/g)).toHaveLength(1)
    expect(running.stderr).toContain('disk is full')
    expect(running.stderr).not.toContain('failed to record')
    disk.exec('DROP TRIGGER full')
    disk.close()
    await waitFor('the events in the file', () => running.stderr.includes('has all events'))
    const { stdout } = await sluice('log', '--log-file', running.logFile)
    expect(stdout).toContain('HTTPRoute')
  })

  it('is continued after a restart', async () => {
    await running.stop()
    await running.start()
    expect(await status('c.example.com')).toBe(200)
    await moveTo('d.example.com', 'c.example.com')
  })
})
