import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { createIoCore } from '../../src/engines/core/index.ts'
import { send } from '../support/http-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { startEngine } from './engine-rig.ts'

const held: ServerResponse[] = []
const server = createServer((_request, response) => held.push(response))
afterAll(() => server.closeAllConnections())

it('requests are answered 503 while no read buffer is free, and are served again later', async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const core = createIoCore({ memoryPages: 64 })
  const rig = await startEngine({ core, head: core.createHead(), maxReadBuffers: 1 })
  const { port } = server.address() as AddressInfo
  rig.plane.upstream = { host: '127.0.0.1', port, pool: 'held' }
  // 4 MiB hold 64 buffers at most, and other things.
  const answers = Array.from({ length: 80 }, () => send(rig.port, { host: 'a.test' }))
  await waitFor('every request', () => rig.plane.errors.length + held.length === 80)
  const refused = rig.plane.errors.length
  expect(rig.plane.errors).toEqual(Array.from({ length: refused }, () => 'overloaded'))
  expect(refused).toBeGreaterThanOrEqual(15)
  expect(rig.engine.counters.readBuffersInUse).toBe(80 - refused)
  for (const response of held) response.end('late')
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 503)).toHaveLength(refused)
  expect(statuses.filter((status) => status === 200)).toHaveLength(80 - refused)
  const more = Array.from({ length: 10 }, () => send(rig.port, { host: 'a.test' }))
  await waitFor('the next requests', () => held.length === 80 - refused + 10)
  for (const response of held.slice(80 - refused)) response.end('again')
  expect((await Promise.all(more)).map(({ body }) => body)).toEqual(more.map(() => 'again'))
  await rig.close()
  await waitFor('the buffers', () => rig.engine.counters.readBuffersInUse === 0)
})
