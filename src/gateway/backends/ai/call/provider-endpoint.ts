/** One provider of language models, as requests use it. */
import type { UpstreamAddress } from '../../../../engines/http/sockets/upstream-address.ts'
import type { ModelProvider } from '../../../../ground/model/model-providers.ts'
import type { BackendPart } from '../../../proxy/config/backend-access.ts'
import type { NamedTarget } from '../../../proxy/config/rules.ts'
import type { Chance, EndpointSet, UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import type { DefaultCredentials } from '../credentials/default-credentials.ts'
import type { Provider } from '../providers/provider.ts'

/** One provider of a backend, with its state. Replaced if its configuration changes. */
export interface ProviderEndpoint {
  readonly provider: ModelProvider
  readonly vendor: Provider
  /** The name by which the catalog of models knows the provider. */
  readonly catalogId: string
  /** The provider whose models of the catalog are served; undefined if any may be. */
  readonly listedAs: string | undefined
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
  /** Returns the endpoints of the Service or InferencePool, each with its own health; undefined for hosts. */
  readonly pods: (() => EndpointSet) | undefined
  /** The InferencePool that chooses the endpoint of each request; undefined for hosts and Services. */
  readonly pool: NamedTarget | undefined
  /** Identifies the provider in all proxies. */
  readonly key: string
  /** Identifies where the provider stores things. Providers of models at the same host are one place. */
  readonly place: string
  /** True if `host` is an IP address. */
  readonly isAddress: boolean
  /** Credentials of the cloud, which are available if no policy sets credentials. */
  readonly credentials: DefaultCredentials | undefined
}

/** Returns the name of a provider, or its address if it has no name. */
export const providerName = ({ provider, host, port }: ProviderEndpoint): string =>
  provider.name ?? `${host}:${port}`

/** Returns whether a provider may succeed after a failure of another one. */
export type Suits = (one: ProviderEndpoint) => boolean

/** Returns whether a provider was not tried yet, and may succeed. */
export const isLeft = (
  {
    tried,
    suits,
  }: { readonly tried: readonly ProviderEndpoint[]; readonly suits: Suits | undefined },
  one: ProviderEndpoint,
): boolean => !tried.includes(one) && suits?.(one) !== false

/** Returns whether a provider, or one of its Pods, is not ejected. */
export const isAvailable = (
  { endpoint, pods }: ProviderEndpoint,
  { now }: Pick<Chance, 'now'>,
): boolean =>
  pods === undefined ? !endpoint.isEjected(now) : pods().all.some((pod) => !pod.isEjected(now))
