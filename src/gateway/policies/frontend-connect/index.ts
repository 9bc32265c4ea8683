import { parseDurationMs } from '../../../ground/base/duration.ts'
import { choice, integer, list, object, optional, required } from '../../../ground/schema/field.ts'
import { duration, durationOrZero } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

const schema = object('FrontendConnect', {
  mode: required(
    choice('FrontendConnectMode', {
      Deny: 'CONNECT requests get 405.',
      Route:
        'A CONNECT request passes the routes and policies of its listener like any other request, with the path `/`. Its backend gets the bytes of the tunnel.',
      Tunnel:
        'The tunnel is a new connection to a listener of the same Gateway, on the port that the request names. Its host is ignored.',
    }),
    'Whether CONNECT requests are accepted.',
  ),
  ports: optional(list(integer({ min: 1, max: 65_535 }), { min: 1, max: 64 }), {
    doc: 'The ports that a CONNECT request may name. Others get 403. If not set: 443 for `Route`, and the ports of the Gateway for `Tunnel`. Beyond the interface of agentgateway, like all further fields.',
  }),
  serverName: optional(
    choice('FrontendConnectServerName', {
      Any: 'The gateway does not read what the tunnel carries.',
      Match:
        'The client must begin with TLS whose server name (SNI) is the host of the CONNECT request. Other tunnels are cut before any byte of the client is forwarded, at the latest after `frontend.tls.handshakeTimeout`. Nothing is decrypted.',
    }),
    { doc: 'What the client must send first in a tunnel.', default: 'Any' },
  ),
  idleTimeout: optional(durationOrZero, {
    doc: 'A tunnel without bytes for this time is cut, after twice this time at the latest; no limit if 0s.',
    default: '1h',
  }),
  maxDuration: optional(duration, 'A tunnel is cut after this time; no limit if not set.'),
  maxTunnels: optional(
    integer({ min: 1, max: 1_000_000 }),
    'Maximum number of tunnels of a port in each worker of a proxy, open or being opened. Further CONNECT requests get 503.',
  ),
})

/** Decides about requests for tunnels. If the policy cannot be read, they are refused. */
export const frontendConnect = definePolicy({
  section: 'frontend',
  field: 'connect',
  schema,
  doc: 'Tunnels through the gateway (HTTP CONNECT). If not set, CONNECT requests get 405.',
  security: false,
  compile({ mode, ports, serverName, idleTimeout, maxDuration, maxTunnels }) {
    const config = {
      mode,
      ports: ports ?? (mode === 'Tunnel' ? undefined : [443]),
      idleTimeoutMs: parseDurationMs(idleTimeout ?? '1h') ?? 0,
      maxDurationMs: parseDurationMs(maxDuration) ?? 0,
      maxTunnels,
      ...(serverName === 'Match' && { matchesServerName: true as const }),
    }
    return { config, problems: [] }
  },
  apply: () => import('./apply.ts'),
})
