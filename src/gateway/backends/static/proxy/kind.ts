/** GatewayBackends with one address or host name. */
import { GatewayError } from '../../../../ground/errors/index.ts'
import { type BackendKind, CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import { type ResolveContext, usableAccess } from '../../../proxy/request/destinations.ts'
import { atFixedHost, checkedFixedHost, fixedHost } from '../../../proxy/request/fixed-host.ts'

export function staticKind(context: ResolveContext): BackendKind {
  const backends = new CompiledBackends('static', (_, settings) => fixedHost(settings))
  return {
    type: 'static',
    protocol: 'http',
    set: backends.set,
    remove: backends.remove,
    destination(placement, named, request, options) {
      const backend = backends.find(named.name)
      if (backend === undefined) throw new GatewayError('service_not_found', named.name)
      return atFixedHost(context, backend, usableAccess(placement, named), request, options)
    },
    checked(placement, named) {
      const backend = backends.find(named.name)
      const access = usableAccess(placement, named)
      return backend && checkedFixedHost(context, backend, access, named.label ?? named.name)
    },
    warmUp({ destination }) {
      if (destination.type === 'static') context.resolver.hosts.warm(destination.host)
    },
  }
}
