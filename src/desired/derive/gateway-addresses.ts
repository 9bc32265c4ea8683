/**
 * Where clients reach a Gateway: the addresses of the Services that carry its name in their label
 * (GEP-1762), else those that its proxies tell.
 */
import type { GatewaySpec } from '../../api/gateway-api/gateway.ts'
import { gatewayNameLabel, proxyObjectName } from '../../model/proxy-names.ts'
import { elsewhere, type Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'

/** Index of Services by `namespace/name` of the Gateway that they are labelled with. */
export const gatewayServices = {
  name: 'gateway-services',
  kinds: ['Service'],
  keys: ({ object, ref }: ObjectState): readonly string[] => {
    const gateway = object?.metadata.labels?.[gatewayNameLabel]
    return gateway === undefined ? [] : [`${ref.namespace}/${gateway}`]
  },
} as const

interface GatewayAddress {
  readonly type: 'IPAddress' | 'Hostname'
  readonly value: string
}

interface ServiceStatus {
  readonly loadBalancer?: {
    readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[]
  }
}

/** metav1: at most 16 in a status. */
const most = 16

interface GatewayAddresses {
  readonly addresses: readonly GatewayAddress[]
  /** Why the Gateway cannot be reached as it asks; undefined where it can. */
  readonly failure: Failure | undefined
}

/** `name` is `namespace/name` of the Gateway. */
export function gatewayAddresses(name: string, spec: GatewaySpec, read: Reader): GatewayAddresses {
  const services = servicesOf(name, read)
  const given = services.flatMap(addressesOfService)
  const pending = services.find(isPending)
  const values = given.length > 0 || pending !== undefined ? given : toldByProxies(name, read)
  const addresses = [...new Set(values)].slice(0, most).map(addressOf)
  return { addresses, failure: failureOf(spec, addresses, pending) }
}

/** By the label, whose value is the name, or what stands for a name that no label can have. */
function servicesOf(name: string, read: Reader): readonly ObjectState[] {
  const [namespace = '', gateway = ''] = name.split('/')
  const label = `${namespace}/${proxyObjectName(gateway)}`
  const named = read.index(gatewayServices.name, name)
  return label === name ? named : [...named, ...read.index(gatewayServices.name, label)]
}

function addressesOfService({ object }: ObjectState): string[] {
  if (object === undefined) return []
  const { type = 'ClusterIP', clusterIP, clusterIPs } = specOf<'Service'>(object)
  if (type === 'LoadBalancer') {
    const { loadBalancer } = (object.status ?? {}) as ServiceStatus
    return (loadBalancer?.ingress ?? []).flatMap(({ hostname, ip }) => hostname ?? ip ?? [])
  }
  const own = clusterIPs ?? (clusterIP === undefined ? [] : [clusterIP])
  return own.filter((address) => address !== 'None' && address !== '')
}

/** Somebody is about to give it an address. */
function isPending(service: ObjectState): boolean {
  if (service.object === undefined) return false
  const { type } = specOf<'Service'>(service.object)
  return type === 'LoadBalancer' && addressesOfService(service).length === 0
}

function toldByProxies(name: string, read: Reader): string[] {
  const text = read.fact<string>(`addresses:${name}`)
  return text === undefined ? [] : text.split(',')
}

function addressOf(value: string): GatewayAddress {
  const isIp = /^[0-9.]+$/.test(value) || value.includes(':')
  return { type: isIp ? 'IPAddress' : 'Hostname', value }
}

function failureOf(
  { addresses: wanted = [] }: GatewaySpec,
  given: readonly GatewayAddress[],
  pending: ObjectState | undefined,
): Failure | undefined {
  const asked = wanted.flatMap(({ value = '' }) => (value === '' ? [] : [value]))
  if (given.length === 0) {
    const nobody =
      pending === undefined
        ? 'no proxy has told an address that it serves on'
        : `Service ${pending.ref.namespace}/${pending.ref.name} has no address yet`
    if (asked.length === 0) return { reason: 'AddressNotAssigned', message: nobody, ...elsewhere }
    // Nobody says whether it will be given or never: until it is, it cannot be used.
    const message = `spec.addresses: ${asked.join(', ')} is not given; ${nobody}`
    return { reason: 'AddressNotUsable', message, ...elsewhere }
  }
  const refused = asked.filter((value) => given.every((entry) => entry.value !== value))
  if (refused.length === 0) return undefined
  const message = `spec.addresses: ${refused.join(', ')} cannot be used; the proxies serve on ${given.map(({ value }) => value).join(', ')}`
  return { reason: 'AddressNotUsable', message, ...elsewhere }
}
