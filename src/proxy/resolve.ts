import { GatewayError } from '../errors/index.ts'
import type { NamedTarget } from './config/rules.ts'
import type { DestinationOptions, PolicyPlace } from './request/destinations.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import type { Destination } from './upstream/destination.ts'
import type { Asked } from './upstream/http-version.ts'

const noOptions: DestinationOptions = {}

/**
 * From a backendRef to an address: the last thing that can go wrong before bytes are sent. Throws or
 * rejects with `backend_invalid`, `service_not_found`, `policy_unenforceable`, `no_endpoints`,
 * `backend_unsupported`, `destination_refused`, `overloaded` or `dns_failed`.
 */
export function resolveDestination(
  { kinds }: Pick<GatewayRuntime, 'kinds'>,
  placement: PolicyPlace,
  named: NamedTarget,
  request: Asked,
  options = noOptions,
): Destination | Promise<Destination> {
  const kind = kinds.of(named)
  if (kind?.destination !== undefined) return kind.destination(placement, named, request, options)
  const { target, name } = named
  if (target.type === 'invalid') {
    const isMissing = target.reason === 'BackendNotFound'
    throw new GatewayError(isMissing ? 'service_not_found' : 'backend_invalid', target.message)
  }
  if (kind !== undefined) throw new GatewayError('backend_unsupported', kind.onlyFor)
  const backend = kinds.find(name)
  if (backend === undefined) throw new GatewayError('service_not_found', name)
  const why = backend.type === 'unsupported' ? backend.message : name
  throw new GatewayError('backend_unsupported', why)
}
