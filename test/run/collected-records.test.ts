/** Decision records that a proxy sends to its controller, which keeps them in memory to judge changes. */
import { afterEach, expect, it } from 'vitest'
import { CollectedRecords } from '../../src/control/plane/controller/records.ts'
import { recordedRequests } from '../../src/control/plane/recorded-requests.ts'
import { XdsServer } from '../../src/control/xds/server.ts'
import { RemoteChannel } from '../../src/gateway/proxy/remote/remote-channel.ts'
import type { BlockSink } from '../../src/past/decisions/decision-log.ts'
import { waitFor } from '../support/wait-for.ts'
import { openDecisionLog, writeDecision } from '../support/written-decisions.ts'

const running: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.close()
})

const ignored = () => undefined
const reports = {
  connected: ignored,
  disconnected: ignored,
  onAck: ignored,
  onReject: ignored,
  onRecover: ignored,
}

async function startController(address: string) {
  const records = new CollectedRecords({ notify: ignored })
  const server = await new XdsServer({ address, reports, onRecords: records.take }).start()
  running.push(server)
  server.publish({ sequence: 1, upserted: [], removed: [] })
  const ids = async () => {
    const { records: open } = recordedRequests({ collected: () => records.newest() })
    return Array.from((await open?.())?.() ?? [], ({ id }) => id)
  }
  return { server, records, ids }
}

/** A block with one record, as a worker writes it. */
function blockOf(id: string, path = '/cart', gateway?: string): Uint8Array {
  let block = new Uint8Array()
  const append: BlockSink['append'] = (bytes, length, done) => {
    block = new Uint8Array(bytes.subarray(0, length))
    done(true)
  }
  const log = openDecisionLog({ isBusy: false, idle: () => Promise.resolve(), append })
  writeDecision(log, { id, path, ...(gateway && { gateway }) })
  log.stop()
  return block
}

it('returns the newest records first, also after a restart of the controller', async () => {
  const first = await startController('127.0.0.1:0')
  const { address } = first.server
  const channel = new RemoteChannel({
    addresses: [address],
    node: {
      name: 'edge-1',
      gateway: { namespace: 'ns', name: 'edge' },
      addresses: [],
      version: '',
    },
    onNotice: ignored,
  })
  running.push(channel)
  // Before a controller answers, blocks are kept.
  channel.reportRecords(blockOf('failed'), false)
  channel.start()
  await waitFor('the first block', async () => (await first.ids()).length === 1)
  channel.reportRecords(blockOf('sampled'), true)
  await waitFor('the second block', async () => (await first.ids()).length === 2)
  expect(await first.ids()).toEqual(['sampled', 'failed'])

  await first.server.close()
  // Failures never push out the sample.
  const long = '/x'.repeat(4_000)
  for (let n = 0; n < 40; n++) channel.reportRecords(blockOf(`flood-${n}`, long), false)
  const second = await startController(address)
  await waitFor('all blocks', async () => (await second.ids()).includes('sampled'), 30_000)
  const ids = await second.ids()
  expect(ids).toContain('flood-39')
  expect(ids).not.toContain('failed')
})

it('ignores records of another Gateway than that of the proxy', () => {
  const notices: string[] = []
  const records = new CollectedRecords({ notify: (_, text) => notices.push(text) })
  for (const gateway of ['ns/edge', 'ns/other', 'ns/other']) {
    const block = blockOf(gateway, '/cart', gateway)
    records.take('edge-1', 'ns/edge', { block, isRepeated: false })
  }
  expect(records.newest()).toHaveLength(1)
  expect(notices).toEqual([
    'proxy edge-1 of Gateway ns/edge sent decision records of another Gateway; they are ignored',
  ])
})

it('keeps each record once, within a limit that one proxy cannot use up', () => {
  const records = new CollectedRecords({ notify: ignored })
  const take = (proxy: string, block: Uint8Array, isRepeated: boolean) =>
    records.take(proxy, 'ns/edge', { block, isRepeated })
  const quiet = Buffer.from(blockOf('quiet'))
  take('quiet', quiet, false)
  take('quiet', quiet, true)
  for (let n = 0; n < 100; n++) take('loud', new Uint8Array(400_000).fill(n + 1), false)
  take('loud', new Uint8Array(1_000_000), false)
  const kept = records.newest()
  expect(kept.filter((block) => block.equals(quiet))).toHaveLength(1)
  expect(kept.length).toBeLessThan(45)
  expect(kept.every(({ length }) => length < 1_000_000)).toBe(true)
})
