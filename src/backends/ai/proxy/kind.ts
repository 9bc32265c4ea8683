/** GatewayBackends of language models. */
import { type BackendKind, CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { AiCall } from './ai-call.ts'
import { routeTypesOf } from './model-call.ts'
import { compileProviders, type ModelBackend } from './model-providers.ts'
import { errorWriterFor } from './own-answers.ts'
import { warmCredentials } from './warm-credentials.ts'

export function aiKind(runtime: GatewayRuntime): BackendKind {
  const backends = new CompiledBackends<'ai', ModelBackend>('ai', (name, { groups }, before) =>
    compileProviders(name, groups, before),
  )
  return {
    type: 'ai',
    protocol: 'llm',
    onlyFor: 'only requests to a model can go there',
    takesVendorKeys: true,
    set: backends.set,
    remove: backends.remove,
    begin: (context, { name }) => new AiCall(context, runtime, () => backends.find(name)),
    errorWriter(context, placement, { name }) {
      const provider = backends.find(name)?.groups[0]?.[0]
      const access = provider && placement?.backend(provider.named, () => provider.part)
      const types = routeTypesOf(access)
      return errorWriterFor(types.typeOf(context.exchange.request.path) ?? 'Completions')
    },
    warmUp({ namespace, name }) {
      const backend = backends.find(`${namespace}/${name}`)
      if (backend !== undefined) warmCredentials(backend, runtime.config)
    },
  }
}
