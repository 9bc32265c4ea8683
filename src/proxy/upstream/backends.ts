import { isIP } from 'node:net'
import type { BackendResource } from '../../model/resources.ts'
import type { UpstreamAddress } from '../engine/types.ts'
import { plainAddress } from './endpoint.ts'

/** A GatewayBackend as requests need it. */
export type CompiledDestination =
  | StaticDestination
  | { readonly type: 'dynamic' }
  | { readonly type: 'unsupported'; readonly message: string }

export interface StaticDestination {
  readonly type: 'static'
  /** Without brackets. */
  readonly host: string
  readonly port: number
  readonly address: UpstreamAddress
  /** A name rather than an address. */
  readonly isHostname: boolean
}

/** GatewayBackends by `namespace/name`. */
export class BackendTable {
  readonly #backends = new Map<string, CompiledDestination>()

  set({ namespace, name, destination }: BackendResource): void {
    const compiled = destination.type === 'static' ? staticDestination(destination) : destination
    this.#backends.set(`${namespace}/${name}`, compiled)
  }

  remove({ namespace, name }: BackendResource): void {
    this.#backends.delete(`${namespace}/${name}`)
  }

  find(name: string): CompiledDestination | undefined {
    return this.#backends.get(name)
  }
}

function staticDestination({ host, port }: { host: string; port: number }): StaticDestination {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  const address = plainAddress(bare, port)
  return { type: 'static', host: bare, port, address, isHostname: isIP(bare) === 0 }
}
