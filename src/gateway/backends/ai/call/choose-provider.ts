/** Chooses the provider for an attempt, and derives the provider's health from its response. */
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { FieldPair, ResponseHead } from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import { choose, endpointsOfName, requireUsable } from '../../../proxy/request/destinations.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { AttemptOutcome, UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { chooseEndpoint, now } from '../../../proxy/upstream/endpoint.ts'
import { upstreamVersion } from '../../../proxy/upstream/http-version.ts'
import type { NameEndpoints } from '../../../proxy/upstream/name-endpoints.ts'
import { isProviderFailure } from './failover.ts'
import type { ModelCall } from './model-call.ts'
import { chooseProvider, type ModelBackend } from './model-providers.ts'
import { isAvailable, type ProviderEndpoint, providerName } from './provider-endpoint.ts'
import { retryHintMs } from './retry-hint.ts'

/** Sets the destination of the next attempt: a provider that was not tried yet, if there is one. */
export function resolveProvider(
  call: ModelCall,
  runtime: GatewayRuntime,
  backend: ModelBackend,
): undefined | Promise<undefined> {
  const { context } = call
  const { exchange, placement } = context
  if (placement === undefined) throw new GatewayError('no_backends')
  const provider = untriedProvider(call, runtime)
  const access = placement.backend(provider.named, provider.ownPart)
  requireUsable(access)
  if (backend.hasSeveral) noteSkipped(call, provider)
  call.tried = [...call.tried, provider]
  call.provider = provider
  call.reason = undefined
  offerCredential(exchange, call.credentials.ofVendor(provider.vendor, backend.hasOneVendor))
  call.access = access
  // The pool chooses the endpoint of a request that is prepared.
  if (provider.pool !== undefined) return aim(context, provider, access, undefined)
  if (provider.pods !== undefined) {
    const pod = choose(runtime, provider.pods(), { exchange }, access.policies.connection)
    if (pod === undefined) throw new GatewayError('no_endpoints', providerName(provider))
    return aim(context, provider, access, undefined, pod)
  }
  return provider.isAddress
    ? aim(context, provider, access, undefined)
    : aimAtName(context, provider, access, runtime)
}

/** Returns the provider for the next attempt, which was not tried yet unless all were. */
function untriedProvider(call: ModelCall, { random }: GatewayRuntime): ProviderEndpoint {
  const chance = { random, now }
  let provider = chooseProvider(call, chance)
  if (provider === undefined) {
    // All providers were tried, and a retry policy requires another attempt.
    call.tried = []
    call.unsuited = 0
    call.suits = undefined
    provider = chooseProvider(call, chance)
  }
  if (provider === undefined) throw new GatewayError('no_endpoints')
  return provider
}

/** Notes ejected providers that would otherwise have been candidates. Called before `provider` counts as tried. */
function noteSkipped(call: ModelCall, provider: ProviderEndpoint): void {
  for (const group of call.groups) {
    for (const one of group) {
      const isKnown = one === provider || call.tried.includes(one) || call.skipped?.includes(one)
      if (!isKnown && !isAvailable(one, { now })) call.skipped = [...(call.skipped ?? []), one]
    }
    if (group.includes(provider)) return
  }
}

function aimAtName(
  context: RequestContext,
  provider: ProviderEndpoint,
  access: BackendAccess,
  { random, resolver }: GatewayRuntime,
): undefined | Promise<undefined> {
  const { host, port } = provider
  const aimAt = (found: NameEndpoints): undefined => {
    const first = chooseEndpoint(found, { random, now })
    return aim(context, provider, access, first && { first, found })
  }
  const found = endpointsOfName({ resolver }, access.policies.connection, host, port)
  if (!(found instanceof Promise)) return aimAt(found)
  // If the name does not resolve, connecting fails, and the next provider is tried.
  return found.then(aimAt, () => aim(context, provider, access, undefined))
}

/** Sets the client's credential for `passthrough`, because the vendor may differ between attempts. */
function offerCredential({ extensions }: ServerExchange, credential: FieldPair | undefined): void {
  if (credential === undefined) extensions.delete(forwardingExtensions.clientCredential)
  else extensions.set(forwardingExtensions.clientCredential, credential)
}

function aim(
  context: RequestContext,
  provider: ProviderEndpoint,
  { profiles, policies, steps }: BackendAccess,
  name: { readonly first: UpstreamEndpoint; readonly found: NameEndpoints } | undefined,
  pod?: UpstreamEndpoint,
): undefined {
  const { host, endpoint } = provider
  const { address } = pod ?? provider
  const profile = profiles.of(host)
  // The default protocol of providers is HTTP/1.1; policies may choose another.
  const version = upstreamVersion(policies.connection, context.exchange.request, '1.1')
  const race = name && profile.race(name.found, version)
  context.destination = {
    address: profile.address(name?.first.address ?? address, version),
    ...(race && { race }),
    authority: provider.authority[profile.scheme],
    isHostname: true,
    settings: policies.connection,
    steps,
    endpoint: pod ?? endpoint,
  }
}

/** Providers have no health checks, so a provider that fails or is out of quota is ejected at once. */
export function providerOutcome(
  result: ResponseHead | GatewayError,
  latencyMs: number,
): AttemptOutcome {
  if (result instanceof GatewayError) {
    // A provider that is too slow is reachable, so the attempt counts as a failed response.
    const isSlow = result.code === 'route_timeout'
    return isSlow ? { kind: 'failed', retryAfterMs: 0 } : { kind: 'unreachable' }
  }
  if (!isProviderFailure(result.status)) return { kind: 'answered', latencyMs }
  const hint = retryHintMs(result, Date.now())
  return hint === 0 ? { kind: 'unreachable' } : { kind: 'failed', retryAfterMs: hint }
}
