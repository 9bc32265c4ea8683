/** GatewayBackends of A2A agents. */
import { type BackendKind, CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { A2aCall } from './a2a-call.ts'
import { A2aBackend } from './backend.ts'

export function a2aKind(runtime: GatewayRuntime): BackendKind {
  const backends = new CompiledBackends<'a2a', A2aBackend>(
    'a2a',
    (_, settings, before) => new A2aBackend(settings, before),
  )
  return {
    type: 'a2a',
    protocol: 'a2a',
    onlyFor: 'only requests of A2A clients can go there',
    set: backends.set,
    remove: backends.remove,
    begin: (context, { name }) => new A2aCall(context, runtime, backends, name),
    warmUp({ destination }) {
      if (destination.type === 'a2a') runtime.resolver.hosts.warm(destination.host)
    },
  }
}
