/** Providers of language models: where they are, what is known of each, and which one is asked. */

import { bareHost } from '../../../base/bare-host.ts'
import type { UpstreamAddress } from '../../../engine/sockets/upstream-address.ts'
import type { ModelProvider, ProviderGroup } from '../../../model/model-providers.ts'
import type { BackendPart } from '../../../proxy/config/backend-access.ts'
import { type NamedTarget, nameTarget } from '../../../proxy/config/rules.ts'
import type { BackendName } from '../../../proxy/request/backend-kind.ts'
import { splitAuthority } from '../../../proxy/upstream/authority.ts'
import { betterOfTwo, type Chance } from '../../../proxy/upstream/choose.ts'
import { plainAddress, UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import type { DefaultCredentials } from '../credentials/default-credentials.ts'
import { providerOf } from '../providers/loaded.ts'
import type { Provider } from '../providers/provider.ts'
import { vendorTls } from '../providers/vendor-tls.ts'

/** One provider of a backend. Lives as long as the provider stays what it is, with what it learned. */
export interface ProviderEndpoint {
  readonly provider: ModelProvider
  readonly vendor: Provider
  /** Without brackets. */
  readonly host: string
  readonly port: number
  readonly address: UpstreamAddress
  readonly endpoint: UpstreamEndpoint
  /** By which policies are merged; one for each provider. */
  readonly named: NamedTarget
  readonly part: BackendPart
  /** Of the cloud, where no policy has any. */
  readonly credentials: DefaultCredentials | undefined
}

export interface ModelBackend {
  /** By priority. */
  readonly groups: readonly (readonly ProviderEndpoint[])[]
  /** All providers are of the same vendor. */
  readonly hasOneVendor: boolean
}

const defaultPort = 443

/** `before`: what the backend was; providers that have not changed keep what is known of them. */
export function compileProviders(
  backend: BackendName,
  groups: readonly ProviderGroup[],
  before: ModelBackend | undefined,
): ModelBackend {
  const known = new Map(
    before?.groups.flat().map((one) => [JSON.stringify(one.provider), one] as const),
  )
  const vendors = new Set(groups.flat().map(({ config }) => config.vendor))
  return {
    hasOneVendor: vendors.size < 2,
    groups: groups.map((group) =>
      group.map((one) => known.get(JSON.stringify(one)) ?? compileProvider(backend, one)),
    ),
  }
}

function compileProvider(
  { namespace, name }: BackendName,
  provider: ModelProvider,
): ProviderEndpoint {
  const vendor = providerOf(provider.config.vendor)
  const given = provider.host ?? vendor.defaultHost(provider.config)
  // A host that users configure as the vendor's own may name its port.
  const { host, port: ownPort } = splitAuthority(given) ?? { host: bareHost(given) }
  const port = provider.port ?? ownPort ?? defaultPort
  const address = plainAddress(host, port)
  const isOwnHost = provider.host === undefined
  // The vendor's own host never hears a key in clear; another one only where the port says so.
  const isTlsByDefault = isOwnHost || port === defaultPort
  const credentials = vendor.cloudCredentials?.(host, isOwnHost)
  return {
    provider,
    vendor,
    host,
    port,
    address,
    credentials,
    endpoint: new UpstreamEndpoint(address),
    named: nameTarget({ type: 'backend', namespace, name }),
    part: {
      sections: provider.name === undefined ? [] : [provider.name],
      needsTls: false,
      ...(isTlsByDefault && { defaultTls: vendorTls }),
      ...(credentials && { credentials: credentials.step }),
    },
  }
}

/**
 * The first group with a provider that is in use decides, and in it the better of two. Where none is
 * in use, the best group anyway: trying is better than refusing. `tried`: what this request has asked
 * already; undefined where that is everybody.
 */
export function chooseProvider(
  groups: ModelBackend['groups'],
  tried: ReadonlySet<ProviderEndpoint>,
  chance: Chance,
): ProviderEndpoint | undefined {
  const left = groups.map((group) => group.filter((one) => !tried.has(one)))
  for (const group of left) {
    const used = group.filter(({ endpoint }) => !endpoint.isEjected(chance.now))
    if (used.length > 0) return better(used, chance)
  }
  return better(left.find((group) => group.length > 0) ?? [], chance)
}

function better(group: readonly ProviderEndpoint[], chance: Chance): ProviderEndpoint | undefined {
  const chosen = betterOfTwo(
    group.map(({ endpoint }) => endpoint),
    chance,
  )
  return group.find(({ endpoint }) => endpoint === chosen)
}
