/** Providers of language models. */
import type {
  FailoverRules,
  ModelProvider,
  ProviderConfig,
  ProviderGroup,
  ServedModel,
} from '../../../../ground/model/model-providers.ts'
import { defineBackend } from '../../define.ts'
import { failoverRules } from '../models/failover.ts'
import { configOfNamed, providerNames } from '../providers/index.ts'
import { type AiSpec, aiSchema, type ProviderSpec } from './schema.ts'

declare module '../../../../ground/model/resources.ts' {
  interface Destinations {
    readonly ai: {
      /** Groups of providers, highest priority first. */
      readonly groups: readonly ProviderGroup[]
      /** The models that clients can ask for. If omitted, they can ask for any. */
      readonly models?: readonly ServedModel[]
      readonly failover?: FailoverRules
      /** Expression; requests with the same value go to the same provider. */
      readonly affinity?: string
    }
  }
}

export const aiBackend = defineBackend({
  field: 'ai',
  type: 'ai',
  doc: 'Language models.',
  schema: aiSchema,
  derive: (spec) => {
    const { failover, sessionAffinity } = spec
    const destination = {
      groups: providerGroups(spec),
      ...(failover && { failover: failoverRules(failover) }),
      ...(sessionAffinity && { affinity: sessionAffinity.source }),
    }
    return { destination }
  },
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
  const { pathPrefix } = spec
  for (const [name, set] of Object.entries(spec)) {
    if (!providerNames.includes(name) || typeof set !== 'object') continue
    return { ...configOfNamed(name, set), ...(pathPrefix !== undefined && { pathPrefix }) }
  }
  return { vendor: '' }
}
