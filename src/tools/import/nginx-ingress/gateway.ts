/** Creates the Gateway of Ingress objects, with a listener for each host that has a certificate. */
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { type Conversion, compact } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { addGateway, gatewayName } from '../targets.ts'
import { listenerOf } from './listeners.ts'
import type { Annotations } from './other-annotations.ts'

export interface TlsHost {
  readonly host: string
  readonly secret: string
  readonly namespace: string | undefined
  readonly field: SourceField
}

export function addIngressGateway(
  result: Conversion,
  hosts: readonly TlsHost[],
  annotations: Annotations,
  origin: SourceField,
): void {
  const home = result.namespace
  const allowedRoutes = { namespaces: { from: 'All' } }
  const byHost = certificatesByHost(hosts)
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
  addGateway(result, origin, [plain, ...secure], annotations)
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

/** The certificate of each host: the first one, as in nginx. Others are reported. */
function certificatesByHost(hosts: readonly TlsHost[]): Map<string, TlsHost> {
  const byHost = new Map<string, TlsHost>()
  for (const entry of hosts) {
    const { host, secret, namespace, field } = entry
    const first = byHost.get(host)
    if (first === undefined) byHost.set(host, entry)
    else if (first.secret !== secret || first.namespace !== namespace) {
      const reason = `${host} has the certificate of Secret ${first.secret}, not that of ${secret}`
      field.report('changed', reason)
    }
  }
  return byHost
}
