import { canonicalJson } from '../../base/canonical.ts'
import type { StreamProtocol } from '../../engine/contracts/streams.ts'
import type { ListenerResource } from '../../model/resources.ts'
import type { ListenerPlacement } from './placement.ts'
import type { PortTable } from './port-table.ts'

/** What is spoken on a port; TLS is that of HTTPS and TLS listeners. */
export type PortUse = 'HTTP' | 'TLS' | 'TCP' | 'UDP'

type Tables = Map<number, PortTable>

/** Listeners by port. A connection is of one sort, and sees listeners of its own sort only. */
export class ListenerTables {
  readonly #plaintext: Tables = new Map()
  readonly #secure: Tables = new Map()
  readonly #tcp: Tables = new Map()
  readonly #udp: Tables = new Map()

  /** Listeners of HTTPS and TLS share ports, and are told apart by the name of the handshake. */
  of({ protocol }: ListenerResource): Tables {
    switch (protocol) {
      case 'HTTP':
        return this.#plaintext
      case 'HTTPS':
      case 'TLS':
        return this.#secure
      case 'TCP':
        return this.#tcp
      case 'UDP':
        return this.#udp
    }
  }

  forRequests(port: number, scheme: 'http' | 'https'): PortTable | undefined {
    return (scheme === 'https' ? this.#secure : this.#plaintext).get(port)
  }

  forStreams(port: number, protocol: StreamProtocol): PortTable | undefined {
    return { tcp: this.#tcp, tls: this.#secure, udp: this.#udp }[protocol].get(port)
  }

  /** The listener whose Gateway's policies hold for connections before a listener is chosen. */
  deciding(port: number, use: PortUse): ListenerPlacement | undefined {
    const tables = { HTTP: this.#plaintext, TLS: this.#secure, TCP: this.#tcp, UDP: this.#udp }
    return tables[use].get(port)?.first()
  }

  /** Every port that has a listener to serve, ascending. */
  ports(): number[] {
    const all = [this.#plaintext, this.#secure, this.#tcp, this.#udp]
    const served = new Set(all.flatMap((tables) => [...tables.keys()]))
    return [...served].sort((a, b) => a - b)
  }
}

/** Are two versions of a listener the same but for the certificates that they refer to? */
export function differsInCertificates(a: ListenerResource, b: ListenerResource): boolean {
  if (a.tls === undefined || b.tls === undefined) return false
  return canonicalJson({ ...a, tls: null }) === canonicalJson({ ...b, tls: null })
}
