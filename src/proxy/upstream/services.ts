/**
 * Services and their endpoints. EndpointSlices name their Service; a Service port and the ports of
 * its slices meet by name. Endpoints of one port are put together when first asked for, and again
 * after a change of that Service only.
 */
import type { HttpVersion } from '../../exchange/connection.ts'
import { appProtocolOf } from '../../model/app-protocols.ts'
import type {
  Resource,
  ServicePort,
  ServiceResource,
  WorkloadResource,
} from '../../model/resources.ts'
import type { EndpointSet } from './choose.ts'
import { addressText, plainAddress, UpstreamEndpoint } from './endpoint.ts'
import { versionOfAppProtocol } from './http-version.ts'
import { type HintedEndpoint, type Locality, nearEndpoints } from './locality.ts'

/** `namespace/name` of a Service. */
type ServiceName = string

interface ServiceEntry {
  service: ServiceResource | undefined
  readonly slices: Map<string, WorkloadResource>
  /** By transport and port number of the Service; cleared by a change. */
  readonly byPort: Map<string | number, EndpointSet>
  /** By port number; cleared by a change. */
  readonly versions: Map<number, HttpVersion | undefined>
  /** By address, so that counts survive a change of the slices. */
  known: Map<string, UpstreamEndpoint>
}

const noEndpoints: EndpointSet = { preferred: [], all: [] }

export class ServiceTable {
  readonly #entries = new Map<ServiceName, ServiceEntry>()
  readonly #locality: Locality

  /** `locality`: where the process runs, as far as that is known. */
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

  /** `old`: what the slice was until now; it may have moved to another Service. */
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

  /** The Service itself, or undefined where there is none. */
  find(name: ServiceName): ServiceResource | undefined {
    return this.#entries.get(name)?.service
  }

  /** The version of HTTP that a port says it speaks; undefined where it says none. */
  version(name: ServiceName, port: number): HttpVersion | undefined {
    const entry = this.#entries.get(name)
    if (entry?.service === undefined) return undefined
    if (!entry.versions.has(port)) {
      const found = findPort(entry.service.ports, port, 'TCP')
      entry.versions.set(port, versionOfAppProtocol(found?.appProtocol))
    }
    return entry.versions.get(port)
  }

  /** Endpoints of a port that may be used; empty where there are none, or no such port. */
  endpoints(name: ServiceName, port: number, transport: 'TCP' | 'UDP' = 'TCP'): EndpointSet {
    const entry = this.#entries.get(name)
    if (entry?.service === undefined) return noEndpoints
    const key = transport === 'TCP' ? port : `udp:${port}`
    let endpoints = entry.byPort.get(key)
    if (endpoints === undefined) {
      const found = collectEndpoints(entry, entry.service, port, transport)
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

/** Every ready address once, although several slices may name it while endpoints move. */
function collectEndpoints(
  entry: ServiceEntry,
  service: ServiceResource,
  portNumber: number,
  transport: 'TCP' | 'UDP',
): readonly HintedEndpoint[] {
  const port = findPort(service.ports, portNumber, transport)
  if (port === undefined) return []
  const found = new Map<string, HintedEndpoint>()
  for (const slice of entry.slices.values()) {
    const target = slice.ports.find(({ name }) => name === port.name)
    if (target === undefined) continue
    for (const { address, ready, forZones, forNodes } of slice.endpoints) {
      if (!(ready || service.publishNotReady)) continue
      const text = addressText(address, target.port)
      if (found.has(text)) continue
      const endpoint =
        entry.known.get(text) ?? new UpstreamEndpoint(plainAddress(address, target.port))
      found.set(text, { endpoint, forZones, forNodes })
      entry.known.set(text, endpoint)
    }
  }
  forgetIdle(entry, found)
  return [...found.values()]
}

/** Drops counts of addresses that have left and have nothing under way. */
function forgetIdle(entry: ServiceEntry, current: ReadonlyMap<string, unknown>): void {
  if (entry.known.size <= current.size * 2 + 16) return
  entry.known = new Map(
    [...entry.known].filter(([text, { outstanding }]) => outstanding > 0 || current.has(text)),
  )
}

function findPort(
  ports: readonly ServicePort[],
  number: number,
  transport: 'TCP' | 'UDP',
): ServicePort | undefined {
  return ports.find(({ port, protocol = 'TCP' }) => port === number && protocol === transport)
}

/** A Service port as policies may name it, by name and by number, and whether it speaks TLS. */
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
