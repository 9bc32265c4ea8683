/** From a backend of language models to one provider, and what is learned of providers. */
import { isIP } from 'node:net'
import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import { GatewayError } from '../../../errors/index.ts'
import type { FieldPair, ResponseHead } from '../../../exchange/exchange.ts'
import { forwardingFacts } from '../../../exchange/forwarding.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { joinAuthority } from '../../../proxy/upstream/authority.ts'
import { chooseEndpoint, now } from '../../../proxy/upstream/choose.ts'
import type { AttemptOutcome, UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { upstreamVersion } from '../../../proxy/upstream/http-version.ts'
import type { NameEndpoints } from '../../../proxy/upstream/name-endpoints.ts'
import type { ModelCall } from './model-call.ts'
import { chooseProvider, type ModelBackend, type ProviderEndpoint } from './model-providers.ts'
import { retryHintMs } from './retry-hint.ts'

/** Sets the destination of the request; a later attempt asks a provider that was not asked yet. */
export function resolveProvider(
  context: RequestContext,
  call: ModelCall,
  { random, resolver }: GatewayRuntime,
  backend: ModelBackend,
): undefined | Promise<undefined> {
  const { exchange, placement } = context
  if (placement === undefined) throw new GatewayError('no_backends')
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
  // If the name does not resolve, connecting fails, and the next provider is tried as after any failure.
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
export function mayRepeat({ exchange }: RequestContext, { groups }: ModelBackend): boolean {
  if (exchange.facts.has(forwardingFacts.retry)) return true
  return groups.length > 1 || (groups[0]?.length ?? 0) > 1
}

export function hasUntriedProvider(call: ModelCall, backend: ModelBackend | undefined): boolean {
  return backend?.groups.flat().some((one) => !call.tried.has(one)) ?? false
}

/** Did the provider fail, so that another one is worth a try? */
export function isProviderFailure(status: number): boolean {
  return status === 429 || status >= 500
}

/** Providers have no health checks: one that is out of order or out of quota is ejected at once. */
export function providerOutcome(
  result: ResponseHead | GatewayError,
  latencyMs: number,
): AttemptOutcome {
  if (result instanceof GatewayError) {
    // A slow provider is reachable: that counts like a bad answer.
    const isSlow = result.code === 'route_timeout'
    return isSlow ? { kind: 'failed', retryAfterMs: 0 } : { kind: 'unreachable' }
  }
  if (!isProviderFailure(result.status)) return { kind: 'answered', latencyMs }
  const hint = retryHintMs(result.headers, Date.now())
  return hint === 0 ? { kind: 'unreachable' } : { kind: 'failed', retryAfterMs: hint }
}
