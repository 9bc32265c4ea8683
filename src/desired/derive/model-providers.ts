/** Providers of language models, as they are written -> as proxies need them. */
import { vendorNames } from '../../backends/ai/providers/index.ts'
import type { ModelProvider, ProviderConfig, ProviderGroup } from '../../model/model-providers.ts'
import type { AiBackendSpec, LlmProviderSpec } from '../shapes.ts'

/** Groups by priority; a backend with one provider has one group of one. */
export function providerGroups({ provider, groups }: AiBackendSpec): readonly ProviderGroup[] {
  if (provider !== undefined) return [[providerOf(provider)]]
  return (groups ?? []).map(({ providers }) =>
    providers.map((named) => ({ name: named.name, ...providerOf(named) })),
  )
}

function providerOf(spec: LlmProviderSpec): ModelProvider {
  const { host, port, path } = spec
  return {
    config: configOf(spec),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(path !== undefined && { path }),
  }
}

/** The schema has ensured that there is exactly one vendor; proxies refuse a backend without. */
function configOf(spec: LlmProviderSpec): ProviderConfig {
  const vendor = vendorNames.find((name) => spec[name] !== undefined) ?? ''
  return { ...(spec[vendor] as Omit<ProviderConfig, 'vendor'>), vendor }
}
