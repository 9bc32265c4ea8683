/** Providers of language models, as they are written -> as proxies need them. */
import type { AiBackend, LlmProvider } from '../../api/gateway-backend.ts'
import { vendorNames } from '../../backends/ai/providers/index.ts'
import type { ModelProvider, ProviderConfig, ProviderGroup } from '../../model/model-providers.ts'

/** Groups by priority; a backend with one provider has one group of one. */
export function providerGroups({ provider, groups }: AiBackend): readonly ProviderGroup[] {
  if (provider !== undefined) return [[providerOf(provider)]]
  return (groups ?? []).map(({ providers }) =>
    providers.map((named) => ({ name: named.name, ...providerOf(named) })),
  )
}

function providerOf(spec: LlmProvider): ModelProvider {
  const { host, port, path } = spec
  return {
    config: configOf(spec),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(path !== undefined && { path }),
  }
}

/** The schema has ensured that there is exactly one vendor; proxies refuse a backend without. */
function configOf(spec: LlmProvider): ProviderConfig {
  const vendor = vendorNames.find((name) => spec[name] !== undefined)
  return vendor === undefined ? { vendor: '' } : { ...spec[vendor], vendor }
}
