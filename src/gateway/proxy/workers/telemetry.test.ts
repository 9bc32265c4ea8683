import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import { startStreamCounters } from '../../../engines/http/engine-counters.ts'
import { startFloodCounters } from '../../../engines/http/limits/http2-floods.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import { Learned } from '../../../ground/exchange/learned.ts'
import { AccessLog } from '../telemetry/access-log.ts'
import type { AccessRecord } from '../telemetry/types.ts'
import { WorkerTelemetry } from './telemetry.ts'

const counters = {
  connectionsTotal: 3,
  connectionsOpen: 1,
  receivedBytes: 10,
  sentBytes: 20,
  tlsConnectionsTotal: 0,
  tlsConnectionsOpen: 0,
  tlsReceivedBytes: 0,
  tlsSentBytes: 0,
  tlsHandshakesFailed: 0,
  tlsSessionsResumed: 0,
  proxyHeadersRefused: 0,
  connectionsRefused: 0,
  connectionsUnauthorized: 0,
  upstreamConnectionsTotal: 2,
  upstreamConnectionsOpen: 1,
  tunnelsOpen: 0,
  readBuffersInUse: 1,
  badHeads: 0,
  http2Connections: 0,
  http2Streams: 0,
  upstreamRaceAttempts: 0,
  upstreamRacesWon: { ipv4: 0, ipv6: 0 },
  http2StreamsStalled: 0,
  http2StreamsRefused: 0,
  http2Floods: startFloodCounters(),
  coreTraps: 0,
}

const exchange = {
  learned: new Learned(),
  source: { address: '10.0.0.9', port: 40_000 },
  request: { version: '1.1' },
  port: 8080,
  endedAt: 5,
  responseBytes: 7,
} as unknown as ServerExchange

const access: AccessRecord = {
  gateway: 'ns/gw',
  reason: 'Internal',
  status: 500,
  durationMs: 5,
  retries: 0,
  protocol: 'http',
  method: 'BREW',
  host: 'x',
  path: '/',
}

describe('the telemetry of a worker', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-telemetry-'))
  afterEach(() => rmSync(folder, { recursive: true }))

  it('limits client-chosen labels, logs an internal error once, and writes every access log line', async () => {
    const path = join(folder, 'log')
    const log = new AccessLog({ fd: openSync(path, 'a') })
    const bugs: string[] = []
    const telemetry = new WorkerTelemetry({
      log,
      format: 'text',
      send: () => undefined,
      onBug: (text) => bugs.push(text),
    })
    const bug = new GatewayError('bug', undefined, new TypeError('inner'))
    telemetry.onDone(exchange, { ...access, bug })
    telemetry.onDone(exchange, { ...access, method: 'STEEP', bug })
    telemetry.onBadHead(8080, new GatewayError('bad_request'), exchange.source, 'http')
    await log.close()

    expect(bugs).toEqual([expect.stringContaining('TypeError: inner')])
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(4)
    expect(telemetry.snapshot(counters, startStreamCounters())).toMatchObject({
      requests_total: [
        {
          labels: [
            'unknown',
            'http',
            'OTHER',
            '500',
            'Internal',
            '8080/ns/gw',
            'ns/gw',
            'unknown',
            'unknown',
            'unknown',
            // No policy adds labels.
            '',
          ],
          values: [2],
        },
        { labels: expect.arrayContaining(['400', 'InvalidRequest', '8080']), values: [1] },
      ],
      response_bytes_total: [{ values: [14] }, { values: [0] }],
      downstream_connections_total: [{ values: [3] }],
    })
  })
})
