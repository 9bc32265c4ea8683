import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { freePort, type RunningGateway, startGateway } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

let upstream: Upstream
beforeAll(async () => {
  upstream = await startUpstream()
  return () => upstream.close()
})

let running: RunningGateway | undefined
afterEach(async () => {
  await running?.dispose()
  running = undefined
})

async function start(port: number): Promise<RunningGateway> {
  const base = manifest(
    gateway(port),
    staticBackend('main', upstream.port),
    httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
  )
  running = await startGateway({ manifests: { 'base.yaml': base } })
  return running
}

describe('a damaged event in the log', () => {
  const blocks = 'UPDATE blocks SET body = zeroblob(length(body))'
  it.each([
    ['a damaged block of events', blocks],
    ['an event that is not JSON', "UPDATE events SET body = '{' || body"],
    ['an event of an unknown shape', "UPDATE events SET body = '{}'"],
    [
      'an object without metadata',
      "UPDATE events SET body = json_remove(body, '$.data.object.metadata')",
    ],
    [
      'a missing event',
      'DELETE FROM events WHERE position = (SELECT max(position) - 1 FROM events)',
    ],
    ['a missing table', 'DROP TABLE subjects'],
    ['a missing purge position', 'DELETE FROM purged'],
    ['a purge position after its end', 'UPDATE purged SET up_to = 1000000'],
  ])('is moved aside with the log: %s', async (_, damage) => {
    const port = await freePort()
    const gw = await start(port)
    await gw.stop()
    const { log } = openEmbeddedLog(gw.logFile)
    const all = await Array.fromAsync(log.read())
    const applied = all.find(({ event }) => event.type === 'dev.sluice.resource.applied.v1')
    if (applied === undefined) throw new Error('the log has no object')
    const copies = Array.from({ length: 400 }, (_, index) => ({ ...applied.event, id: `${index}` }))
    expect((await log.append(copies)).ok).toBe(true)
    await log.close()
    const database = new DatabaseSync(gw.logFile)
    database.exec(`DELETE FROM snapshots; ${damage}`)
    database.close()
    await gw.start()
    expect((await send(port)).status).toBe(200)
    expect(gw.stderr).toMatch(/was damaged .* and is now .*corrupt-1/)
    await gw.stop()
    await gw.start()
    expect((await send(port)).status).toBe(200)
    expect(readdirSync(dirname(gw.logFile)).filter((name) => /corrupt-2/.test(name))).toEqual([])
  })
})
