/** What MCP servers list, as proxies report it over their stream. */
import { status } from '@grpc/grpc-js'
import { afterEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.ts'
import { BareClient } from '../../../test/support/xds-client.ts'
import type { ListReport } from '../../ground/model/mcp-lists.ts'
import type { Resource, VersionedResource } from '../../ground/model/resources.ts'
import { encodeListRequest } from '../wire/discovery.ts'
import { XdsServer } from './server.ts'

const running: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.close()
})

/** A Gateway with a route to an MCP backend. */
function resourcesOf(gateway: string, backend: string): VersionedResource[] {
  const listener = `listener/Gateway/ns/${gateway}/http`
  const owner = { namespace: 'ns', name: gateway }
  const all: Resource[] = [
    {
      type: 'listener',
      key: listener,
      gateway: owner,
      owner: { kind: 'Gateway', ...owner },
      section: 'http',
      port: 80,
      protocol: 'HTTP',
      hostname: '',
    },
    {
      type: 'route',
      key: `route/HTTPRoute/ns/${gateway}/0`,
      route: { kind: 'HTTPRoute', namespace: 'ns', name: gateway },
      created: 1,
      order: 0,
      ruleIndex: 0,
      attachments: [{ listener, hostnames: [''] }],
      matches: [],
      filters: [],
      backends: [
        { weight: 1, target: { type: 'backend', namespace: 'ns', name: backend }, filters: [] },
      ],
    },
    {
      type: 'backend',
      key: `backend/ns/${backend}`,
      namespace: 'ns',
      name: backend,
      destination: { type: 'mcp', targets: [], isStateless: false },
    },
  ]
  return all.map((resource) => ({ version: '1', resource }))
}

const report: ListReport = {
  backend: 'ns/own',
  target: 'a',
  list: 'tools',
  pinning: 'Block',
  items: [{ name: 'pay', digest: 'd1', definition: '{}' }],
  removed: ['old'],
  isComplete: false,
  isFirst: true,
  isLast: true,
}

it('takes reports of backends of the own Gateway only', async () => {
  const taken: unknown[] = []
  const reports = {
    connected: () => undefined,
    disconnected: () => undefined,
    onAck: () => undefined,
    onReject: () => undefined,
    onRecover: () => undefined,
  }
  const onList = (proxy: string, one: ListReport) => void taken.push([proxy, one])
  const server = await new XdsServer({ address: '127.0.0.1:0', reports, onList }).start()
  running.push(server)
  const upserted = [...resourcesOf('edge', 'own'), ...resourcesOf('other', 'foreign')]
  server.publish({ sequence: 1, upserted, removed: [] })
  const client = new BareClient({ address: server.address })
  running.push(client)
  client.hello().accept(await client.next())
  client.say({}, encodeListRequest({ ...report, backend: 'ns/foreign' }))
  client.say({}, encodeListRequest(report))
  await waitFor('the report', () => taken.length > 0)
  expect(taken).toEqual([['edge-1', report]])
  client.say({}, encodeListRequest({ ...report, list: 'files' as never }))
  expect(await client.end()).toMatchObject({
    code: status.INVALID_ARGUMENT,
    details: expect.stringContaining('a report of a list is not valid'),
  })
})
