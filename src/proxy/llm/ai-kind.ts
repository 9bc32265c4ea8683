/** GatewayBackends of language models. */
import type { BackendKind } from '../backend-kind.ts'
import type { ConfigStore } from '../config/store.ts'
import type { GatewayRuntime } from '../runtime.ts'
import type { ModelBackend } from '../upstream/model-providers.ts'
import { AiCall } from './ai-call.ts'
import { routeTypesOf } from './model-call.ts'
import { errorWriterFor } from './own-answers.ts'
import { warmCredentials } from './warm-credentials.ts'

export const aiKind = (runtime: GatewayRuntime): BackendKind => ({
  type: 'ai',
  protocol: 'llm',
  onlyFor: 'only requests to a model can go there',
  takesVendorKeys: true,
  begin: (context, { name }) => new AiCall(context, runtime, () => find(runtime.config, name)),
  errorWriter(context, placement, { name }) {
    const provider = find(runtime.config, name)?.groups[0]?.[0]
    const access = provider && placement?.backend(provider.named, () => provider.part)
    const types = routeTypesOf(access)
    return errorWriterFor(types.typeOf(context.exchange.request.path) ?? 'Completions')
  },
  warmUp({ namespace, name }) {
    const backend = find(runtime.config, `${namespace}/${name}`)
    if (backend !== undefined) warmCredentials(backend, runtime.config)
  },
})

function find({ backends }: ConfigStore, name: string): ModelBackend | undefined {
  const found = backends.find(name)
  return found?.type === 'ai' ? found : undefined
}
