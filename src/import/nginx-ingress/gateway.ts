/** Creates the Gateway of Ingress objects, with a listener for each host that has a certificate. */
import { gatewayGroup } from '../../api/names.ts'
import { type Conversion, compact } from '../conversion.ts'
import type { Field } from '../field.ts'
import { addGateway, gatewayName } from '../targets.ts'
import { listenerOf } from './listeners.ts'

export interface TlsHost {
  readonly host: string
  readonly secret: string
  readonly namespace: string | undefined
}

export function addIngressGateway(
  result: Conversion,
  hosts: readonly TlsHost[],
  origin: Field,
): void {
  const home = result.namespace
  const allowedRoutes = { namespaces: { from: 'All' } }
  const byHost = new Map(hosts.map((entry) => [entry.host, entry]))
  const secure = [...byHost.values()].map(({ host, secret, namespace }) => ({
    name: listenerOf(host),
    port: 443,
    protocol: 'HTTPS',
    hostname: host,
    tls: {
      certificateRefs: [
        compact({ name: secret, namespace: namespace === home ? undefined : namespace }),
      ],
    },
    allowedRoutes,
  }))
  const plain = { name: 'http', port: result.port, protocol: 'HTTP', allowedRoutes }
  addGateway(result, origin, [plain, ...secure])
  for (const { secret, namespace } of byHost.values()) {
    if (namespace === home || namespace === undefined) continue
    const spec = {
      from: [{ group: gatewayGroup, kind: 'Gateway', namespace: home ?? 'default' }],
      to: [{ group: '', kind: 'Secret', name: secret }],
    }
    const metadata = { name: `${gatewayName}-${secret}`, namespace }
    result.add(
      { apiVersion: `${gatewayGroup}/v1beta1`, kind: 'ReferenceGrant', metadata, spec },
      origin,
    )
  }
}
