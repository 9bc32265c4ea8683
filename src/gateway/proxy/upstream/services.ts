/** Services and their endpoints. Endpoints are collected when they are first used after a change. */
import type { HttpVersion } from '../../../ground/exchange/connection.ts'
import { appProtocolOf } from '../../../ground/model/app-protocols.ts'
import type {
  Resource,
  ServicePort,
  ServiceResource,
  WorkloadResource,
} from '../../../ground/model/resources.ts'
import { usableEndpoints } from '../../../ground/model/usable-endpoints.ts'
import type { EndpointSet } from './endpoint.ts'
import { addressText, plainAddress, UpstreamEndpoint } from './endpoint.ts'

interface EndpointsKey {
  readonly port: number
  readonly transport: 'TCP' | 'UDP'
  readonly proxy: string | undefined
}

/** `namespace/name` of a Service. */
type ServiceName = string

interface ServiceEntry {
  service: ServiceResource | undefined
  readonly slices: Map<string, WorkloadResource>
  /** Endpoints by transport and port number; cleared by a change. */
  readonly byPort: Map<string | number, EndpointSet>
  /** HTTP versions by port number; cleared by a change. */
  readonly versions: Map<number, HttpVersion | undefined>
  /** Endpoints by address and proxy. Kept when the slices change, so that request counts survive. */
  known: Map<string, UpstreamEndpoint>
}

/** Zone and node of this process, if known. */
export interface Locality {
  readonly zone?: string
  readonly node?: string
}

const noEndpoints: EndpointSet = { preferred: [], all: [] }

export class ServiceTable {
  readonly #entries = new Map<ServiceName, ServiceEntry>()
  readonly #locality: Locality

  constructor(locality: Locality = {}) {
    this.#locality = locality
  }

  setService(service: ServiceResource): void {
    const entry = this.#entry(`${service.namespace}/${service.name}`)
    entry.service = service
    entry.byPort.clear()
    entry.versions.clear()
  }

  removeService(service: ServiceResource): void {
    this.#change(`${service.namespace}/${service.name}`, (entry) => {
      entry.service = undefined
    })
  }

  /** Stores a slice. `old` is its previous version, which may belong to another Service. */
  setSlice(slice: WorkloadResource, old?: Resource): void {
    if (old?.type === 'workload') this.removeSlice(old)
    const entry = this.#entry(`${slice.namespace}/${slice.service}`)
    entry.slices.set(slice.key, slice)
    entry.byPort.clear()
  }

  removeSlice(slice: WorkloadResource): void {
    this.#change(`${slice.namespace}/${slice.service}`, (entry) => {
      entry.slices.delete(slice.key)
    })
  }

  find(name: ServiceName): ServiceResource | undefined {
    return this.#entries.get(name)?.service
  }

  /** Returns the HTTP version that the appProtocol of a port sets, if any. */
  version(name: ServiceName, port: number): HttpVersion | undefined {
    const entry = this.#entries.get(name)
    if (entry?.service === undefined) return undefined
    if (!entry.versions.has(port)) {
      const found = findPort(entry.service.ports, port, 'TCP')
      entry.versions.set(port, appProtocolOf(found?.appProtocol)?.version)
    }
    return entry.versions.get(port)
  }

  /**
   * Returns the ready endpoints of a port or, if there are none, the terminating ones that still serve, as
   * kube-proxy does (KEP-1669). Empty if there is no such port. Each proxy has separate endpoints, because health by
   * way of one proxy says nothing about the others.
   *
   * @param proxy identity of the proxy through which connections are made
   */
  endpoints(
    name: ServiceName,
    port: number,
    transport: 'TCP' | 'UDP' = 'TCP',
    proxy?: string,
  ): EndpointSet {
    const entry = this.#entries.get(name)
    if (entry?.service === undefined) return noEndpoints
    const key = transport === 'TCP' && proxy === undefined ? port : `${transport}:${port} ${proxy}`
    let endpoints = entry.byPort.get(key)
    if (endpoints === undefined) {
      const found = collectEndpoints(entry, entry.service, { port, transport, proxy })
      endpoints = nearEndpoints(found, this.#locality)
      entry.byPort.set(key, endpoints)
    }
    return endpoints
  }

  #entry(name: ServiceName): ServiceEntry {
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      entry = {
        service: undefined,
        slices: new Map(),
        byPort: new Map(),
        versions: new Map(),
        known: new Map(),
      }
      this.#entries.set(name, entry)
    }
    return entry
  }

  #change(name: ServiceName, change: (entry: ServiceEntry) => void): void {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    change(entry)
    entry.byPort.clear()
    if (entry.service === undefined && entry.slices.size === 0) this.#entries.delete(name)
  }
}

/**
 * Collects every usable address once. While endpoints move between slices, several slices may contain an
 * address.
 */
function collectEndpoints(
  entry: ServiceEntry,
  service: ServiceResource,
  { port: portNumber, transport, proxy }: EndpointsKey,
): readonly HintedEndpoint[] {
  const port = findPort(service.ports, portNumber, transport)
  if (port === undefined) return []
  const candidates = [...entry.slices.values()].flatMap(({ ports, endpoints }) => {
    const target = ports.find(({ name }) => name === port.name)?.port
    return target === undefined ? [] : endpoints.map((one) => ({ ...one, port: target }))
  })
  const found = new Map<string, HintedEndpoint>()
  for (const one of usableEndpoints(candidates, service.publishNotReady)) {
    const text = addressText(one.address, one.port)
    if (found.has(text)) continue
    const key = knownKey(text, proxy)
    const endpoint =
      entry.known.get(key) ?? new UpstreamEndpoint(plainAddress(one.address, one.port))
    found.set(text, { endpoint, forZones: one.forZones, forNodes: one.forNodes })
    entry.known.set(key, endpoint)
  }
  forgetIdle(entry, found)
  return [...found.values()]
}

const knownKey = (address: string, proxy: string | undefined): string =>
  proxy === undefined ? address : `${address} ${proxy}`

/** Drops endpoints that were removed and have no outstanding requests. */
function forgetIdle(entry: ServiceEntry, current: ReadonlyMap<string, unknown>): void {
  if (entry.known.size <= current.size * 2 + 16) return
  entry.known = new Map(
    [...entry.known].filter(([key, { outstanding }]) => {
      const [address = ''] = key.split(' ')
      return outstanding > 0 || current.has(address)
    }),
  )
}

function findPort(
  ports: readonly ServicePort[],
  number: number,
  transport: 'TCP' | 'UDP',
): ServicePort | undefined {
  return ports.find(({ port, protocol = 'TCP' }) => port === number && protocol === transport)
}

/** Returns the section names of a Service port, by which policies may target it, and whether it needs TLS. */
export function portPart(
  ports: readonly ServicePort[],
  portNumber: number,
  transport: 'TCP' | 'UDP' = 'TCP',
): { readonly sections: readonly string[]; readonly needsTls: boolean } {
  const found = findPort(ports, portNumber, transport)
  const name = found?.name ?? ''
  return {
    sections: name === '' ? [`${portNumber}`] : [name, `${portNumber}`],
    needsTls: appProtocolOf(found?.appProtocol)?.isTls === true,
  }
}

interface HintedEndpoint {
  readonly endpoint: UpstreamEndpoint
  readonly forZones: readonly string[] | undefined
  readonly forNodes: readonly string[] | undefined
}

/**
 * Finds the endpoints that EndpointSlice hints assign to this node or zone, as kube-proxy does. Hints are
 * only used if every endpoint has some and at least one endpoint is near. Otherwise all traffic would go to
 * the few endpoints with hints.
 */
function nearEndpoints(found: readonly HintedEndpoint[], { zone, node }: Locality): EndpointSet {
  const all = found.map(({ endpoint }) => endpoint)
  const near =
    hinted(found, node, ({ forNodes }) => forNodes) ??
    hinted(found, zone, ({ forZones }) => forZones)
  return { preferred: near ?? all, all }
}

function hinted(
  found: readonly HintedEndpoint[],
  here: string | undefined,
  hints: (endpoint: HintedEndpoint) => readonly string[] | undefined,
): readonly UpstreamEndpoint[] | undefined {
  if (here === undefined || !found.every((one) => hints(one) !== undefined)) return undefined
  const near = found.filter((one) => hints(one)?.includes(here) === true)
  return near.length === 0 ? undefined : near.map(({ endpoint }) => endpoint)
}
