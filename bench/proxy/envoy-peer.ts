/** Envoy as a peer, with one worker; `test/assets/setup` installs its program. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Certificate } from '../../test/support/certificates.ts'
import { freePort } from '../../test/support/gateway.ts'
import { findPart } from '../../test/support/parts.ts'
import { routing } from './load.ts'
import type { Peer } from './process.ts'

const typed = (type: string, fields: object = {}) => ({
  '@type': `type.googleapis.com/envoy.${type}`,
  ...fields,
})

const address = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } })

const routes = {
  response_headers_to_add: [
    {
      header: { key: 'x-served-by', value: 'envoy' },
      append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
    },
  ],
  virtual_hosts: [
    {
      name: 'shop',
      domains: [routing.host],
      routes: [
        {
          match: {
            prefix: routing.path,
            headers: [{ name: routing.header, string_match: { exact: routing.value } }],
          },
          route: { cluster: 'shop', timeout: '0s' },
        },
      ],
    },
  ],
}

/** Accepts HTTP/1.1 and HTTP/2 with prior knowledge. */
const manager = typed(
  'extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
  {
    stat_prefix: 'shop',
    codec_type: 'AUTO',
    route_config: routes,
    access_log: [
      {
        name: 'access',
        typed_config: typed('extensions.access_loggers.file.v3.FileAccessLog', {
          path: '/dev/null',
        }),
      },
    ],
    http_filters: [
      { name: 'router', typed_config: typed('extensions.filters.http.router.v3.Router') },
    ],
  },
)

function tlsOf({ certificate, key }: Certificate): object {
  const certificates = [
    { certificate_chain: { inline_string: certificate }, private_key: { inline_string: key } },
  ]
  return {
    name: 'tls',
    typed_config: typed('extensions.transport_sockets.tls.v3.DownstreamTlsContext', {
      common_tls_context: { tls_certificates: certificates },
    }),
  }
}

/** Speaks HTTP/1.1 and HTTP/2, over TLS if there is a certificate. */
export async function envoy(
  folder: string,
  upstream: number,
  certificate?: Certificate,
): Promise<Peer> {
  const name = 'envoy'
  const part = findPart('envoy')
  if (!part.found) return { name, absent: part.reason }
  const port = await freePort()
  const chain = {
    filters: [{ name: 'http', typed_config: manager }],
    ...(certificate && { transport_socket: tlsOf(certificate) }),
  }
  const listener = { name: 'http', address: address(port), filter_chains: [chain] }
  const endpoint = { endpoint: { address: address(upstream) } }
  const cluster = {
    name: 'shop',
    type: 'STATIC',
    load_assignment: { cluster_name: 'shop', endpoints: [{ lb_endpoints: [endpoint] }] },
  }
  const config = join(folder, 'envoy.json')
  const resources = { static_resources: { listeners: [listener], clusters: [cluster] } }
  writeFileSync(config, JSON.stringify(resources))
  const options = ['--concurrency', '1', '--use-dynamic-base-id', '--log-level', 'error']
  const command = [join(part.path, 'envoy'), '-c', config, ...options]
  return { name, command: { name, version: '1.40.0', port, command } }
}
