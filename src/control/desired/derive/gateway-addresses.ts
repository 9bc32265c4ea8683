/**
 * The addresses at which clients reach a Gateway: those of Services with the Gateway's name in their
 * label (GEP-1762), or if there are none, those that its proxies report.
 */

import { gatewayNameLabel, proxyObjectName } from '../../../ground/model/proxy-names.ts'
import type { GatewaySpec } from '../../api/gateway-api/gateway.ts'
import { type Failure, notOwn } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'

/** Index of Services by the Gateway (`namespace/name`) in their label. */
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

/** Maximum number of addresses in a status. */
const maxAddresses = 16

interface GatewayAddresses {
  readonly addresses: readonly GatewayAddress[]
  /** Why the requested addresses are not available; undefined if they are. */
  readonly failure: Failure | undefined
}

/** `name` is the `namespace/name` of the Gateway. */
export function gatewayAddresses(name: string, spec: GatewaySpec, read: Reader): GatewayAddresses {
  const services = servicesOf(name, read)
  const given = services.flatMap(addressesOfService)
  const pending = services.find(isPending)
  const values = given.length > 0 || pending !== undefined ? given : reportedByProxies(name, read)
  const addresses = [...new Set(values)].slice(0, maxAddresses).map(addressOf)
  return { addresses, failure: failureOf(spec, addresses, pending) }
}

/** Services with the Gateway's label. Its value is the name, or a replacement if that is no label value. */
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

/** Whether the Service is still waiting for an address. */
function isPending(service: ObjectState): boolean {
  if (service.object === undefined) return false
  const { type } = specOf<'Service'>(service.object)
  return type === 'LoadBalancer' && addressesOfService(service).length === 0
}

function reportedByProxies(name: string, read: Reader): string[] {
  const text = read.input<string>(`addresses:${name}`)
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
    const noAddress =
      pending === undefined
        ? 'no proxy has told an address that it serves on'
        : `Service ${pending.ref.namespace}/${pending.ref.name} has no address yet`
    if (asked.length === 0) return { reason: 'AddressNotAssigned', message: noAddress, ...notOwn }
    // A requested address that is not assigned yet cannot be used; it may never be assigned.
    const message = `spec.addresses: ${asked.join(', ')} is not given; ${noAddress}`
    return { reason: 'AddressNotUsable', message, ...notOwn }
  }
  const refused = asked.filter((value) => given.every((entry) => entry.value !== value))
  if (refused.length === 0) return undefined
  const message = `spec.addresses: ${refused.join(', ')} cannot be used; the proxies serve on ${given.map(({ value }) => value).join(', ')}`
  return { reason: 'AddressNotUsable', message, ...notOwn }
}
