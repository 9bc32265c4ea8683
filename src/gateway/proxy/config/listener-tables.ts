import type { StreamProtocol } from '../../../engines/http/contracts/streams.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import type { ClientSettings } from '../../../ground/exchange/connection.ts'
import type { ListenerResource } from '../../../ground/model/resources.ts'
import type { PortTable } from './port-table.ts'
import { type PortConflict, portConflicts, portSettings } from './shared-ports.ts'

/** What a port carries. HTTPS and TLS listeners can share a port, because the server name selects one. */
export type PortUse = 'HTTP' | 'TLS' | 'TCP' | 'UDP'

export function useOf(protocol: ListenerResource['protocol']): PortUse {
  return protocol === 'HTTPS' ? 'TLS' : protocol
}

const streamUses: Readonly<Record<StreamProtocol, PortUse>> = { tcp: 'TCP', tls: 'TLS', udp: 'UDP' }

type Tables = Map<number, PortTable>

/** Listeners by port and protocol. */
export class ListenerTables {
  readonly #byUse: Readonly<Record<PortUse, Tables>> = {
    HTTP: new Map(),
    TLS: new Map(),
    TCP: new Map(),
    UDP: new Map(),
  }

  of({ protocol }: ListenerResource): Tables {
    return this.#byUse[useOf(protocol)]
  }

  forRequests(port: number, scheme: 'http' | 'https'): PortTable | undefined {
    return (scheme === 'https' ? this.#byUse.TLS : this.#byUse.HTTP).get(port)
  }

  forStreams(port: number, protocol: StreamProtocol): PortTable | undefined {
    return this.#byUse[streamUses[protocol]].get(port)
  }

  /** Returns whether a Gateway has a listener for connections on a port. */
  serves(gateway: string, port: number): boolean {
    const { HTTP, TLS, TCP } = this.#byUse
    return [HTTP, TLS, TCP].some((tables) =>
      [...(tables.get(port)?.listeners() ?? [])].some(({ place }) => place.gateway === gateway),
    )
  }

  /** Returns the settings of connections of a port before the listener is known. */
  clientSettings(port: number, use: PortUse): ClientSettings {
    return portSettings(this.#byUse[use].get(port)?.listeners() ?? [])
  }

  /** Returns the policies that have no effect on a port, because Gateways that share it have other settings. */
  portConflicts(): PortConflict[] {
    return Object.values(this.#byUse).flatMap((tables) =>
      [...tables].flatMap(([port, table]) => portConflicts(port, table.listeners())),
    )
  }

  /** Returns the ports with at least one listener, ascending. */
  ports(): number[] {
    const ports = new Set(Object.values(this.#byUse).flatMap((tables) => [...tables.keys()]))
    return [...ports].sort((a, b) => a - b)
  }
}

/** Returns whether two versions of a listener differ only in the certificates that they refer to. */
export function differsInCertificates(a: ListenerResource, b: ListenerResource): boolean {
  if (a.tls === undefined || b.tls === undefined) return false
  return canonicalJson({ ...a, tls: null }) === canonicalJson({ ...b, tls: null })
}
