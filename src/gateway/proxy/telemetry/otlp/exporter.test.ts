import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, vi } from 'vitest'
import { Exporters } from './exporter.ts'
import { type LogRecord, logSignal } from './log-records.ts'

const mebibyte = 1024 * 1024

const entry = (mebibytes: number): LogRecord => ({
  at: 0,
  attributes: [['prompt', 'a'.repeat(mebibytes * mebibyte)]],
  traceId: undefined,
  spanId: undefined,
})

it('sends large entries one by one, and drops one that the collector never accepts', async () => {
  const collector = createServer((request, response) => {
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
    })
    request.on('end', () => {
      response.statusCode = size > 4 * mebibyte ? 503 : 200
      response.end()
    })
  })
  collector.listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const { port } = collector.address() as AddressInfo
  const total = { sent: 0, dropped: 0 }
  const exporters = new Exporters<LogRecord, { place: { gateway: string } }>({
    signal: logSignal,
    version: '1',
    resolve: async () => ({
      address: { host: '127.0.0.1', port, pool: 'collector' },
      authority: 'collector',
    }),
    onExport: (sent, dropped) => {
      total.sent += sent
      total.dropped += dropped
    },
  })
  const rules = { target: undefined, protocol: 'HTTP' as const, resources: [] }
  try {
    exporters.add(rules, { place: { gateway: 'default/edge' } }, [entry(5), entry(2), entry(2)])
    await vi.waitFor(() => expect(total).toEqual({ sent: 2, dropped: 1 }), 20_000)
    exporters.add(rules, { place: { gateway: 'default/edge' } }, [entry(17)])
    expect(total).toEqual({ sent: 2, dropped: 2 })
  } finally {
    await exporters.flush()
    collector.close()
  }
}, 40_000)
