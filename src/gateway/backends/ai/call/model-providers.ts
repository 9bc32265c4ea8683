/** Providers of language models: their addresses, their state, and the choice among them. */
import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { compatibleWith } from '../../../../engines/messages/catalog/catalog.ts'
import { bareHost } from '../../../../ground/base/bare-host.ts'
import { targetObject } from '../../../../ground/model/destinations.ts'
import type {
  FailoverRules,
  ModelProvider,
  ProviderConfig,
} from '../../../../ground/model/model-providers.ts'
import type { Destination } from '../../../../ground/model/resources.ts'
import { machineTls } from '../../../policies/backend-simple/tls/machine-tls.ts'
import type { BackendPart } from '../../../proxy/config/backend-access.ts'
import { type NamedTarget, nameTarget } from '../../../proxy/config/rules.ts'
import type { BackendName } from '../../../proxy/request/backend-kind.ts'
import { joinAuthority, splitAuthority } from '../../../proxy/upstream/authority.ts'
import {
  betterOfTwo,
  type Chance,
  type EndpointSet,
  plainAddress,
  UpstreamEndpoint,
} from '../../../proxy/upstream/endpoint.ts'
import { Expression } from '../../../variables/index.ts'
import { vendorNames, vendors } from '../providers/index.ts'
import type { Provider } from '../providers/provider.ts'
import { isAvailable, isLeft, type ProviderEndpoint, type Suits } from './provider-endpoint.ts'
import { ServedModels } from './served-models.ts'
import { type Affinity, bestByHash } from './session-affinity.ts'

export interface ModelBackend {
  /** Key for merging the policies of requests for which no provider is chosen yet. */
  readonly named: NamedTarget
  /** Groups of providers, highest priority first. */
  readonly groups: readonly (readonly ProviderEndpoint[])[]
  /** True if all providers are of the same vendor. */
  readonly hasOneVendor: boolean
  readonly hasSeveral: boolean
  /** The models that clients can ask for; undefined if they can ask for any. */
  readonly models: ServedModels | undefined
  readonly affinity: Expression | undefined
  readonly failover: FailoverRules | undefined
}

const defaultPort = 443

const providerByVendor: ReadonlyMap<string, Provider> = new Map(
  await Promise.all(
    vendorNames.map(async (name) => [name, (await vendors[name].provider()).default] as const),
  ),
)

/** `vendor` is a key of the table, because backends with other vendors are rejected on receipt. */
function providerOf({ vendor, systemName }: ProviderConfig): Provider {
  const provider = providerByVendor.get(vendor)
  if (provider === undefined) throw new Error(`unknown vendor ${vendor}`)
  return systemName === undefined ? provider : { ...provider, systemName }
}

/** Returns the endpoints of a Service or an InferencePool. */
export type EndpointsOf = (server: NamedTarget) => EndpointSet

/** `before` is the previous version of the backend; unchanged providers keep their state. */
export function compileProviders(
  backend: BackendName,
  { groups, models, affinity, failover }: Extract<Destination, { readonly type: 'ai' }>,
  before: ModelBackend | undefined,
  endpointsOf: EndpointsOf,
): ModelBackend {
  const known = new Map(
    before?.groups.flat().map((one) => [JSON.stringify(one.provider), one] as const),
  )
  const vendors = new Set(groups.flat().map(({ config }) => config.vendor))
  const { namespace, name } = backend
  const compiled = groups.map((group) =>
    group.map(
      (one) => known.get(JSON.stringify(one)) ?? compileProvider(backend, one, endpointsOf),
    ),
  )
  return {
    named: before?.named ?? nameTarget({ type: 'backend', namespace, name }),
    hasOneVendor: vendors.size < 2,
    hasSeveral: groups.flat().length > 1,
    groups: compiled,
    models: models && new ServedModels(models, compiled.flat()),
    affinity: affinity === undefined ? undefined : new Expression(affinity),
    failover,
  }
}

function compileProvider(
  { namespace, name }: BackendName,
  provider: ModelProvider,
  endpointsOf: EndpointsOf,
): ProviderEndpoint {
  const vendor = providerOf(provider.config)
  const given = provider.host ?? vendor.defaultHost(provider.config)
  // The endpoint of a vendor may include a port.
  const { host, port: ownPort } = splitAuthority(given) ?? { host: bareHost(given) }
  const port = provider.port ?? ownPort ?? defaultPort
  const address = plainAddress(host, port)
  const isOwnHost = provider.host === undefined
  // The vendor's own host gets TLS by default; other hosts do only on the default port.
  const isTlsByDefault = provider.isTls ?? (isOwnHost || port === defaultPort)
  const credentials = vendor.cloudCredentials?.(host, isOwnHost)
  const server = provider.target && nameTarget(provider.target)
  const part: BackendPart = {
    sections: provider.name === undefined || provider.owner !== undefined ? [] : [provider.name],
    ...(provider.owner && { object: provider.owner }),
    ...behind(provider),
    needsTls: false,
    ...(isTlsByDefault && { defaultTls: machineTls }),
    ...(credentials && { credentials: credentials.step }),
  }
  return {
    provider,
    vendor,
    catalogId: catalogIdOf(provider, vendor),
    listedAs: listedAs(provider, vendor),
    host,
    port,
    address,
    credentials,
    endpoint: new UpstreamEndpoint(address),
    named: nameTarget({ type: 'backend', namespace, name }),
    pods: server && (() => endpointsOf(server)),
    pool: server?.target.type === 'service' ? undefined : server,
    key: JSON.stringify([provider.name, host, port, provider.config]),
    place: placeOf(provider, host, port),
    part,
    ownPart: () => part,
    authority: {
      http: joinAuthority(host, port, 'http'),
      https: joinAuthority(host, port, 'https'),
    },
    isAddress: isIP(host) !== 0,
  }
}

/** The object that serves the provider, whose policies apply, too. */
function behind({ target }: ModelProvider): Pick<BackendPart, 'behind'> {
  if (target?.type !== 'service' && target?.type !== 'pool') return {}
  const sections = target.type === 'service' ? [`${target.port}`] : []
  return { behind: { backend: targetObject(target), sections } }
}

/** Named providers of one host may have different accounts. */
function placeOf({ name, owner }: ModelProvider, host: string, port: number): string {
  const account = owner === undefined ? name : undefined
  return hash('sha256', JSON.stringify([account, host, port]), 'base64url').slice(0, 11)
}

/** Servers of other vendors have models of their own, and those of a vendor at another host may have. */
function catalogIdOf({ config, host }: ModelProvider, { systemName }: Provider): string {
  const isOfVendor = host === undefined && config.formats === undefined
  return isOfVendor ? systemName : compatibleWith(config.systemName ?? systemName)
}

/** Only services at their own addresses are known to have the models of the catalog. */
function listedAs({ config, host }: ModelProvider, { systemName }: Provider): string | undefined {
  const isOwnHost = host === undefined
  const isService = config.formats === undefined || config.endpoint !== undefined
  return isOwnHost && isService ? systemName : undefined
}

/**
 * Returns the provider of the session, or else the better of two random ones, in the first group with a provider
 * that is not ejected. If all are ejected, uses the first group anyway, because an attempt may succeed. Skips the
 * providers in `tried`, and returns undefined if no other is left.
 */
export function chooseProvider(choice: Choice, chance: Chance): ProviderEndpoint | undefined {
  for (const admits of admissions) {
    for (const group of choice.groups) {
      const found = chosenIn(group, choice, chance, admits)
      if (found !== undefined) return found
    }
  }
  return undefined
}

/** What a request may be sent to. */
interface Choice {
  readonly groups: ModelBackend['groups']
  readonly tried: readonly ProviderEndpoint[]
  readonly session: Affinity | undefined
  readonly suits: Suits | undefined
}

type Admits = (one: ProviderEndpoint, chance: Chance) => boolean
const isAny: Admits = () => true
const admissions: readonly Admits[] = [isAvailable, isAny]

function chosenIn(
  group: readonly ProviderEndpoint[],
  choice: Choice,
  chance: Chance,
  admits: Admits,
): ProviderEndpoint | undefined {
  const [only] = group
  // Most groups have one provider, which needs no list.
  if (only !== undefined && group.length === 1) {
    return isLeft(choice, only) && admits(only, chance) ? only : undefined
  }
  if (group.length === 0) return undefined
  const { session } = choice
  const left = group.filter((one) => isLeft(choice, one) && admits(one, chance))
  return session === undefined ? better(left, chance) : bestByHash(left, session, keyOf, evenly)
}

const keyOf = ({ key }: ProviderEndpoint): string => key
const evenly = (): number => 1

function better(left: readonly ProviderEndpoint[], chance: Chance): ProviderEndpoint | undefined {
  const chosen = betterOfTwo(
    left.map(({ endpoint }) => endpoint),
    chance,
  )
  return left.find(({ endpoint }) => endpoint === chosen)
}
