import { GatewayError } from '../../../ground/errors/index.ts'
import type { ConnectionSettings } from '../../../ground/exchange/connection.ts'
import type { HostTarget, ServerTarget } from '../../../ground/exchange/exchange.ts'
import type { DirectTarget } from '../../../ground/model/resources.ts'
import { machineTls } from '../../policies/backend-simple/tls/machine-tls.ts'
import { type BackendAccess, httpAccess, streamAccess, withTls } from '../config/backend-access.ts'
import { backendPolicies, type ListenerPlacement } from '../config/placement.ts'
import { noPolicies } from '../config/policies.ts'
import { nameTarget } from '../config/rules.ts'
import { resolveAuthority } from '../request/authority-destination.ts'
import { atAddress, endpointsOfName, type PolicyPlace } from '../request/destinations.ts'
import type { GatewayRuntime } from '../request/runtime.ts'
import type { Destination } from '../upstream/destination.ts'
import { chooseEndpoint, now } from '../upstream/endpoint.ts'
import { plainCall, type RequestTraits, statedVersion } from '../upstream/http-version.ts'
import type { CalloutRequest } from './callout-exchange.ts'

/** gRPC uses HTTP/2 unless a policy sets another version. */
const grpcCall: RequestTraits = { authority: '', scheme: 'http', version: '2', isGrpc: true }

/** Resolves the endpoint of a call. Rejects with a GatewayError if the backend cannot be reached. */
export async function resolveCallout(
  runtime: GatewayRuntime,
  { target, isGrpc, defaultTls }: Pick<CalloutRequest, 'target' | 'isGrpc' | 'defaultTls'>,
): Promise<Destination> {
  if (target.type === 'host') return resolveHost(runtime, target)
  if (target.type === 'server') return resolveServer(runtime, target)
  // No route refers to this backend, so only policies that target the backend itself apply.
  const place: PolicyPlace = {
    backend: (named, part) => {
      const { sections } = part()
      const found = backendPolicies(runtime.config.policies, [], named, { sections })
      return streamAccess(defaultTls === undefined ? found : withTls(found, defaultTls))
    },
  }
  return runtime.kinds.resolve(place, nameTarget(target), isGrpc ? grpcCall : plainCall)
}

/** Resolves a server by host name. Link-local addresses and metadata services are refused. */
function resolveHost(
  runtime: GatewayRuntime,
  { host, port, isSecure }: HostTarget,
): Promise<Destination> {
  const defaultTls = isSecure ? machineTls : undefined
  const access = httpAccess(noPolicies, { needsTls: isSecure, defaultTls })
  const asked = { authority: `${host}:${port}`, scheme: 'http' as const }
  return resolveAuthority(runtime, access, asked, undefined, runtime.resolver.isAllowed)
}

const accessBySettings = new WeakMap<ConnectionSettings, BackendAccess>()

async function resolveServer(
  { resolver, random, cap }: GatewayRuntime,
  { host, port, settings }: ServerTarget,
): Promise<Destination> {
  let access = accessBySettings.get(settings)
  if (access === undefined) {
    access = streamAccess({ ...noPolicies, connection: settings })
    accessBySettings.set(settings, access)
  }
  const endpoints = await endpointsOfName({ resolver }, settings, host, port)
  const endpoint = chooseEndpoint(endpoints, { random, now, most: cap?.most })
  if (endpoint === undefined) throw new GatewayError('dns_failed', host)
  const version = statedVersion(settings) ?? '1.1'
  const race = access.profiles.of(host).race(endpoints, version)
  return atAddress({ host, port, access, version }, endpoint.address, true, undefined, race)
}

/** Resolves the collector of a listener's spans like any other backend, so that the same policies apply. */
export async function resolveCollector(
  { kinds }: GatewayRuntime,
  target: DirectTarget,
  listener: ListenerPlacement,
): Promise<Destination> {
  return kinds.resolve(listener, nameTarget(target), { authority: '', scheme: 'http' })
}
