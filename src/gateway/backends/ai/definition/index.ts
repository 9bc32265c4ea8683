/** Providers of language models. */
import type {
  FailoverRules,
  ModelProvider,
  ProviderConfig,
  ProviderGroup,
  ServedModel,
} from '../../../../ground/model/model-providers.ts'
import { type BackendReader, type DerivedBackend, defineBackend } from '../../define.ts'
import { failoverRules } from '../models/failover.ts'
import { placeOf } from '../models/products.ts'
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
  derive: (spec, reader) => {
    const { failover, sessionAffinity } = spec
    const problems: string[] = []
    const groups = providerGroups(spec, (provider) => providerOf(provider, reader, problems))
    const destination = {
      groups,
      ...(failover && { failover: failoverRules(failover) }),
      ...(sessionAffinity && { affinity: sessionAffinity.source }),
    }
    return { destination, problems, ...foundBehind(groups) }
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
function providerGroups(
  { provider, groups }: AiSpec,
  providerOf: (spec: ProviderSpec) => ModelProvider,
): readonly ProviderGroup[] {
  if (provider !== undefined) return [[providerOf(provider)]]
  return (groups ?? []).map(({ providers }) =>
    providers.map((named) => ({ name: named.name, ...providerOf(named) })),
  )
}

/** Returns the Services and pools to which the providers send requests. */
function foundBehind(groups: readonly ProviderGroup[]): Pick<DerivedBackend, 'found'> {
  const targets = groups.flat().flatMap(({ target }) => target ?? [])
  if (targets.length === 0) return {}
  const namesOf = (type: 'service' | 'pool') =>
    targets.flatMap((target) =>
      target.type === type ? [{ namespace: target.namespace, name: target.name }] : [],
    )
  return { found: { sections: [], services: namesOf('service'), pools: namesOf('pool') } }
}

/** Adds to `problems` why the servers in the cluster cannot be reached. */
function providerOf(spec: ProviderSpec, reader: BackendReader, problems: string[]): ModelProvider {
  const { host, port, path, custom } = spec
  const server = custom?.backendRef && reader.modelServer(custom.backendRef)
  if (server?.problem !== undefined) problems.push(server.problem)
  return {
    config: configOf(spec),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(server && placeOf(server.target)),
    ...(path !== undefined && { path }),
  }
}

/** The schema ensures exactly one vendor. Without one, the empty name makes proxies reject the backend. */
function configOf(spec: ProviderSpec): ProviderConfig {
  const { pathPrefix } = spec
  for (const [name, set] of Object.entries(spec)) {
    if (!providerNames.includes(name) || typeof set !== 'object') continue
    const { backendRef: _server, ...own } = { backendRef: undefined, ...set }
    return { ...configOfNamed(name, own), ...(pathPrefix !== undefined && { pathPrefix }) }
  }
  return { vendor: '' }
}
