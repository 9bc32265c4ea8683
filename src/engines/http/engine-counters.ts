import type { ReadBuffers } from './bytes/read-buffers.ts'
import type { EngineCounters } from './contracts/engine.ts'
import type { StreamCounters } from './contracts/streams.ts'
import { startFloodCounters } from './limits/http2-floods.ts'
import type { ByteMeter } from './sockets/transport.ts'

/** Returns counters at zero. The parameters supply the counters that are kept elsewhere. */
export function startCounters(
  plain: ByteMeter,
  tls: ByteMeter,
  readBuffers: ReadBuffers,
  tlsConnections: () => number,
): EngineCounters {
  return {
    connectionsTotal: 0,
    connectionsOpen: 0,
    get receivedBytes() {
      return plain.received + tls.received
    },
    get sentBytes() {
      return plain.sent + tls.sent
    },
    tlsConnectionsTotal: 0,
    get tlsConnectionsOpen() {
      return tlsConnections()
    },
    get tlsReceivedBytes() {
      return tls.received
    },
    get tlsSentBytes() {
      return tls.sent
    },
    tlsHandshakesFailed: 0,
    tlsSessionsResumed: 0,
    proxyHeadersRefused: 0,
    connectionsRefused: 0,
    connectionsUnauthorized: 0,
    upstreamConnectionsTotal: 0,
    upstreamConnectionsOpen: 0,
    tunnelsOpen: 0,
    upstreamRaceAttempts: 0,
    upstreamRacesWon: { ipv4: 0, ipv6: 0 },
    get readBuffersInUse() {
      return readBuffers.inUse
    },
    badHeads: 0,
    http2Connections: 0,
    http2Streams: 0,
    http2StreamsStalled: 0,
    http2StreamsRefused: 0,
    http2Floods: startFloodCounters(),
    coreTraps: 0,
  }
}

/** Returns stream counters at zero. */
export function startStreamCounters(): StreamCounters {
  const none = () => ({ tcp: 0, tls: 0, udp: 0 })
  return {
    total: none(),
    open: none(),
    received: none(),
    sent: none(),
    droppedDatagrams: { sessions: 0, backlog: 0 },
  }
}
