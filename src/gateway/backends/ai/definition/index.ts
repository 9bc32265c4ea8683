/** Providers of language models. */
import type {
  ModelProvider,
  ProviderConfig,
  ProviderGroup,
} from '../../../../ground/model/model-providers.ts'
import { defineBackend } from '../../define.ts'
import { vendorNames } from '../providers/index.ts'
import { type AiSpec, aiSchema, type ProviderSpec } from './schema.ts'

declare module '../../../../ground/model/resources.ts' {
  interface Destinations {
    /** Groups of providers, highest priority first. */
    readonly ai: { readonly groups: readonly ProviderGroup[] }
  }
}

export const aiBackend = defineBackend({
  field: 'ai',
  type: 'ai',
  doc: 'Language models.',
  schema: aiSchema,
  derive: (spec) => ({ destination: { groups: providerGroups(spec) } }),
  parts: ({ groups = [] }) =>
    groups.flatMap(({ providers }, at) =>
      providers.map(({ name, policies }, index) => ({
        section: name,
        path: `groups[${at}].providers[${index}].policies`,
        policies,
      })),
    ),
  policy: { field: 'ai', worksOnServices: false },
  streamProblem: () => 'it speaks HTTP only',
  choosesEndpoints: 'a provider is chosen for each request',
})

/** Returns the groups, highest priority first; a backend with a single provider has one group. */
function providerGroups({ provider, groups }: AiSpec): readonly ProviderGroup[] {
  if (provider !== undefined) return [[providerOf(provider)]]
  return (groups ?? []).map(({ providers }) =>
    providers.map((named) => ({ name: named.name, ...providerOf(named) })),
  )
}

function providerOf(spec: ProviderSpec): ModelProvider {
  const { host, port, path } = spec
  return {
    config: configOf(spec),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(path !== undefined && { path }),
  }
}

/** The schema ensures exactly one vendor. Without one, the empty name makes proxies reject the backend. */
function configOf(spec: ProviderSpec): ProviderConfig {
  const vendor = vendorNames.find((name) => spec[name] !== undefined)
  return vendor === undefined ? { vendor: '' } : { ...spec[vendor], vendor }
}
