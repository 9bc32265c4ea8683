/** GatewayBackends that work as a forward proxy: the client's request names the destination. */

import { resolveAuthority } from '../../../proxy/request/authority-destination.ts'
import type { BackendKind } from '../../../proxy/request/backend-kind.ts'
import { type ResolveContext, usableAccess } from '../../../proxy/request/destinations.ts'

export const dynamicKind = (context: ResolveContext): BackendKind => ({
  type: 'dynamic',
  protocol: 'http',
  destination: (placement, named, request, { avoid }) =>
    resolveAuthority(context, usableAccess(placement, named), request, avoid),
})
