import { vendorTls } from '../../backends/ai/providers/vendor-tls.ts'
import { resolveDynamic } from '../../backends/dynamic/proxy/kind.ts'
import { withPickerTls } from '../../backends/inference-pool/proxy/picker-tls.ts'
import { GatewayError } from '../../errors/index.ts'
import type { ConnectionSettings } from '../../exchange/connection.ts'
import type { CalloutTarget, HostTarget, VendorTarget } from '../../exchange/exchange.ts'
import { targetObject } from '../../model/inference-pools.ts'
import { backendLevels } from '../../policies/merge.ts'
import { httpAccess, streamAccess } from '../config/backend-access.ts'
import { nameTarget } from '../config/rules.ts'
import type { GatewayRuntime } from '../request/runtime.ts'
import { resolveDestination } from '../resolve.ts'
import { joinAuthority } from '../upstream/authority.ts'
import { chooseEndpoint, now } from '../upstream/choose.ts'
import type { Destination } from '../upstream/destination.ts'
import { type Asked, statedVersion } from '../upstream/http-version.ts'
import { UpstreamProfiles } from '../upstream/profile.ts'

const plainCall: Asked = { authority: '', scheme: 'http', version: '1.1' }
/** gRPC asks for HTTP/2, unless a policy says otherwise. */
const grpcCall: Asked = { authority: '', scheme: 'http', version: '2', isGrpc: true }

/**
 * Where a call of a policy goes: an endpoint of the backend, with what policies settle for
 * connections to it. Rejects with a GatewayError where the backend cannot be reached.
 */
export async function resolveCallout(
  runtime: GatewayRuntime,
  target: CalloutTarget | HostTarget | VendorTarget,
  isGrpc: boolean,
  isPicker = false,
): Promise<Destination> {
  if (target.type === 'host') return resolveHost(runtime, target)
  if (target.type === 'vendor') return resolveVendor(runtime, target)
  const { policies } = runtime.config
  const backend = targetObject(target)
  // No route leads there, so only what targets the backend itself holds.
  const place: Parameters<typeof resolveDestination>[1] = {
    backend: (_named, part) => {
      const levels = backendLevels([], { backend, sections: part().sections })
      const found = policies.merge('backend', 'PostRouting', levels)
      return streamAccess(isPicker ? withPickerTls(found, runtime.config, target) : found)
    },
  }
  return resolveDestination(runtime, place, nameTarget(target), isGrpc ? grpcCall : plainCall)
}

/** As a dynamic forward proxy would reach it, with what that may not reach. */
function resolveHost(
  runtime: GatewayRuntime,
  { host, port, isSecure }: HostTarget,
): Promise<Destination> {
  const policies = { steps: [], answers: [], connection: {}, client: {} }
  const access = httpAccess(policies, {
    needsTls: isSecure,
    ...(isSecure && { defaultTls: vendorTls }),
  })
  const asked = { authority: `${host}:${port}`, scheme: 'http' as const }
  return resolveDynamic(runtime, access, asked, undefined)
}

const profiles = new WeakMap<ConnectionSettings, UpstreamProfiles>()

async function resolveVendor(
  { resolver, random, cap }: GatewayRuntime,
  { host, port, settings }: VendorTarget,
): Promise<Destination> {
  let known = profiles.get(settings)
  if (known === undefined) {
    known = new UpstreamProfiles(settings)
    profiles.set(settings, known)
  }
  const profile = known.of(host)
  const endpoints = await resolver.hosts.endpoints(host, port)
  const endpoint = chooseEndpoint(endpoints, {
    random,
    now,
    most: cap?.most ?? Number.POSITIVE_INFINITY,
  })
  if (endpoint === undefined) throw new GatewayError('dns_failed', host)
  const version = statedVersion(settings) ?? '1.1'
  const race = profile.race(endpoints, version)
  return {
    address: profile.address(endpoint.address, version),
    ...(race && { race }),
    authority: joinAuthority(host, port, profile.scheme),
    isHostname: true,
    settings,
    steps: [],
  }
}
