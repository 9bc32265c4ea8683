/** From a backend of language models to one provider, and what is learned of providers. */
import { isIP } from 'node:net'
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import { GatewayError } from '../../errors/index.ts'
import type { FieldPair } from '../../exchange/exchange.ts'
import { forwardingFacts } from '../../exchange/forwarding.ts'
import { tokenLimitsOf } from '../../exchange/rate-limits.ts'
import type { BackendAccess } from '../config/backend-access.ts'
import { nameRetry, type RequestContext } from '../request-context.ts'
import type { GatewayRuntime } from '../runtime.ts'
import type { Ejection } from '../telemetry/types.ts'
import { joinAuthority } from '../upstream/authority.ts'
import { chooseEndpoint, now } from '../upstream/choose.ts'
import type { UpstreamEndpoint } from '../upstream/endpoint.ts'
import { upstreamVersion } from '../upstream/http-version.ts'
import {
  chooseProvider,
  type ModelBackend,
  type ProviderEndpoint,
} from '../upstream/model-providers.ts'
import type { NameEndpoints } from '../upstream/name-endpoints.ts'
import { ModelCall } from './model-call.ts'

/** Sets the destination of the request; a later attempt asks a provider that was not asked yet. */
export function resolveProvider(
  context: RequestContext,
  { random, resolver }: GatewayRuntime,
  backend: ModelBackend,
): undefined | Promise<undefined> {
  const { exchange, placement } = context
  if (placement === undefined) throw new GatewayError('no_backends')
  if (context.model === undefined) {
    context.keepOriginal()
    tokenLimitsOf(exchange)?.note(exchange)
    context.model = new ModelCall(exchange, mayRepeat(context, backend))
  } else {
    context.model.restore(exchange.request)
    nameRetry(context)
  }
  const call = context.model
  let provider = chooseProvider(backend.groups, call.tried, { random, now })
  if (provider === undefined) {
    // Everybody was asked, and a retry policy wants it once more.
    call.tried.clear()
    call.unsuited = 0
    provider = chooseProvider(backend.groups, call.tried, { random, now })
  }
  if (provider === undefined) throw new GatewayError('no_endpoints')
  const access = placement.backend(provider.named, () => provider.part)
  if (access.problem !== undefined) {
    throw new GatewayError(access.problem.code, access.problem.detail)
  }
  call.tried.add(provider)
  call.provider = provider
  offerCredential(exchange, call.credentials.ofVendor(provider.vendor, backend.hasOneVendor))
  call.access = access
  const { host, port } = provider
  if (isIP(host) !== 0) return aim(context, provider, access, undefined)
  const aimAt = (found: NameEndpoints): undefined => {
    const first = chooseEndpoint(found, { random, now })
    return aim(context, provider, access, first && { first, found })
  }
  const found = resolver.hosts.endpoints(host, port)
  if (!(found instanceof Promise)) return aimAt(found)
  // A name that nobody knows fails where it is connected to: that is how another provider is asked.
  return found.then(aimAt, () => aim(context, provider, access, undefined))
}

/** An address of a provider's name, and all of them. */
interface FoundName {
  readonly first: UpstreamEndpoint
  readonly found: NameEndpoints
}

/** For `passthrough`; each attempt has its own vendor. */
function offerCredential({ facts }: ServerExchange, credential: FieldPair | undefined): void {
  if (credential === undefined) facts.delete(forwardingFacts.clientCredential)
  else facts.set(forwardingFacts.clientCredential, credential)
}

function aim(
  context: RequestContext,
  { host, port, address, endpoint }: ProviderEndpoint,
  { profiles, policies, steps }: BackendAccess,
  name: FoundName | undefined,
): undefined {
  const profile = profiles.of(host)
  // Unless policies say otherwise, providers are spoken to in HTTP/1.1.
  const version = upstreamVersion(policies.connection, context.exchange.request, '1.1')
  const race = name && profile.race(name.found, version)
  context.destination = {
    address: profile.address(name?.first.address ?? address, version),
    ...(race && { race }),
    authority: joinAuthority(host, port, profile.scheme),
    isHostname: true,
    settings: policies.connection,
    steps,
    endpoint,
  }
}

/** Most backends have one provider, and most routes no retries: their heads need not be kept. */
function mayRepeat({ exchange }: RequestContext, { groups }: ModelBackend): boolean {
  if (exchange.facts.has(forwardingFacts.retry)) return true
  return groups.length > 1 || (groups[0]?.length ?? 0) > 1
}

/** Has the request another provider to ask, which nobody has told to stay away from? */
export function hasAnotherProvider(context: RequestContext, runtime: GatewayRuntime): boolean {
  if (context.model?.canTryMore !== true || !context.exchange.isReplayable) return false
  return hasUntriedProvider(context, runtime)
}

function hasUntriedProvider(
  { model, backend }: RequestContext,
  { config }: GatewayRuntime,
): boolean {
  const found = backend && config.backends.find(backend.name)
  if (model === undefined || found?.type !== 'ai') return false
  return found.groups.flat().some((one) => !model.tried.has(one))
}

/** The provider cannot carry the request. Is there another one to ask? Nothing is held against the first. */
export function passOverProvider(context: RequestContext, runtime: GatewayRuntime): boolean {
  const { model } = context
  if (model === undefined || !model.canRestore) return false
  model.unsuited++
  return hasUntriedProvider(context, runtime)
}

/** Did the provider fail, so that another one is worth a try? */
export function isProviderFailure(status: number): boolean {
  return status === 429 || status >= 500
}

/** For metrics: who is left out, and why; undefined where it is no provider of language models. */
export function ejectionOf(
  { model, backend }: RequestContext,
  reason: string,
): Ejection | undefined {
  const provider = model?.provider
  if (provider === undefined) return undefined
  const { host, port, endpoint } = provider
  return {
    backend: backend?.label ?? 'unknown',
    provider: provider.provider.name ?? `${host}:${port}`,
    reason,
    isOver: () => !endpoint.isEjected(now),
  }
}
