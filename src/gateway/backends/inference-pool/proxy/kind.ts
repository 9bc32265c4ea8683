/** InferencePools: an endpoint picker chooses the endpoint of each request. */
import type { BackendKind } from '../../../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { PoolCall } from './pool-call.ts'
import { PoolTable } from './pools.ts'

const noEndpoints = { preferred: [], all: [] }

export function poolKind(runtime: GatewayRuntime): BackendKind {
  const pools = new PoolTable()
  return {
    // In expressions, `backend.type` of a pool is `service`.
    type: 'service',
    protocol: 'http',
    onlyFor: 'requests of an HTTPRoute',
    resources: ['pool', 'pod'],
    set: (resource, old) => pools.set(resource, old),
    remove: (resource) => pools.remove(resource),
    begin: (context, backend, access) => new PoolCall(context, runtime, pools, { backend, access }),
    endpoints: ({ name }) => pools.find(name)?.endpointSet() ?? noEndpoints,
  }
}
