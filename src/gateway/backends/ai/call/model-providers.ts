/** Providers of language models: their addresses, their state, and the choice among them. */
import { isIP } from 'node:net'
import type { UpstreamAddress } from '../../../../engines/http/sockets/upstream-address.ts'
import { bareHost } from '../../../../ground/base/bare-host.ts'
import type { ModelProvider, ProviderGroup } from '../../../../ground/model/model-providers.ts'
import { machineTls } from '../../../policies/backend-simple/tls/machine-tls.ts'
import type { BackendPart } from '../../../proxy/config/backend-access.ts'
import { type NamedTarget, nameTarget } from '../../../proxy/config/rules.ts'
import type { BackendName } from '../../../proxy/request/backend-kind.ts'
import { joinAuthority, splitAuthority } from '../../../proxy/upstream/authority.ts'
import {
  betterOfTwo,
  type Chance,
  plainAddress,
  UpstreamEndpoint,
} from '../../../proxy/upstream/endpoint.ts'
import type { DefaultCredentials } from '../credentials/default-credentials.ts'
import { vendorNames, vendors } from '../providers/index.ts'
import type { Provider } from '../providers/provider.ts'

/** One provider of a backend, with its state. Replaced if its configuration changes. */
export interface ProviderEndpoint {
  readonly provider: ModelProvider
  readonly vendor: Provider
  /** Host name or IP address, without brackets. */
  readonly host: string
  readonly port: number
  readonly address: UpstreamAddress
  readonly endpoint: UpstreamEndpoint
  /** Key for merging policies; each provider has its own. */
  readonly named: NamedTarget
  readonly part: BackendPart
  /** Returns `part`. */
  readonly ownPart: () => BackendPart
  /** Value of Host, by the scheme of the connection. */
  readonly authority: { readonly http: string; readonly https: string }
  /** True if `host` is an IP address. */
  readonly isAddress: boolean
  /** Credentials of the cloud, which are available if no policy sets credentials. */
  readonly credentials: DefaultCredentials | undefined
}

export interface ModelBackend {
  /** Groups of providers, highest priority first. */
  readonly groups: readonly (readonly ProviderEndpoint[])[]
  /** True if all providers are of the same vendor. */
  readonly hasOneVendor: boolean
  readonly hasSeveral: boolean
}

/** Returns the name of a provider, or its address if it has no name. */
export const providerName = ({ provider, host, port }: ProviderEndpoint): string =>
  provider.name ?? `${host}:${port}`

const defaultPort = 443

const providerByVendor: ReadonlyMap<string, Provider> = new Map(
  await Promise.all(
    vendorNames.map(async (name) => [name, (await vendors[name].provider()).default] as const),
  ),
)

/** `vendor` is a key of the table, because backends with other vendors are rejected on receipt. */
function providerOf(vendor: string): Provider {
  const provider = providerByVendor.get(vendor)
  if (provider === undefined) throw new Error(`unknown vendor ${vendor}`)
  return provider
}

/** `before` is the previous version of the backend; unchanged providers keep their state. */
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
    hasSeveral: groups.flat().length > 1,
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
  // The endpoint of a vendor may include a port.
  const { host, port: ownPort } = splitAuthority(given) ?? { host: bareHost(given) }
  const port = provider.port ?? ownPort ?? defaultPort
  const address = plainAddress(host, port)
  const isOwnHost = provider.host === undefined
  // The vendor's own host gets TLS by default; other hosts do only on the default port.
  const isTlsByDefault = isOwnHost || port === defaultPort
  const credentials = vendor.cloudCredentials?.(host, isOwnHost)
  const part: BackendPart = {
    sections: provider.name === undefined ? [] : [provider.name],
    needsTls: false,
    ...(isTlsByDefault && { defaultTls: machineTls }),
    ...(credentials && { credentials: credentials.step }),
  }
  return {
    provider,
    vendor,
    host,
    port,
    address,
    credentials,
    endpoint: new UpstreamEndpoint(address),
    named: nameTarget({ type: 'backend', namespace, name }),
    part,
    ownPart: () => part,
    authority: {
      http: joinAuthority(host, port, 'http'),
      https: joinAuthority(host, port, 'https'),
    },
    isAddress: isIP(host) !== 0,
  }
}

/**
 * Returns the better of two random providers in the first group with a provider that is not ejected. If
 * all are ejected, uses the first group anyway, because an attempt may succeed. Skips the providers in
 * `tried`, and returns undefined if no other is left.
 */
export function chooseProvider(
  groups: ModelBackend['groups'],
  tried: readonly ProviderEndpoint[],
  chance: Chance,
): ProviderEndpoint | undefined {
  for (const group of groups) {
    const found = better(group, tried, chance, isAvailable)
    if (found !== undefined) return found
  }
  for (const group of groups) {
    const found = better(group, tried, chance, isAny)
    if (found !== undefined) return found
  }
  return undefined
}

type Admits = (one: ProviderEndpoint, chance: Chance) => boolean
const isAvailable: Admits = ({ endpoint }, { now }) => !endpoint.isEjected(now)
const isAny: Admits = () => true

function better(
  group: readonly ProviderEndpoint[],
  tried: readonly ProviderEndpoint[],
  chance: Chance,
  admits: Admits,
): ProviderEndpoint | undefined {
  const [only] = group
  // Most groups have one provider, which needs no list.
  if (only !== undefined && group.length === 1) {
    return !tried.includes(only) && admits(only, chance) ? only : undefined
  }
  return group.length === 0 ? undefined : betterOfSeveral(group, tried, chance, admits)
}

function betterOfSeveral(
  group: readonly ProviderEndpoint[],
  tried: readonly ProviderEndpoint[],
  chance: Chance,
  admits: Admits,
): ProviderEndpoint | undefined {
  const left = group.filter((one) => !tried.includes(one) && admits(one, chance))
  const chosen = betterOfTwo(
    left.map(({ endpoint }) => endpoint),
    chance,
  )
  return left.find(({ endpoint }) => endpoint === chosen)
}
