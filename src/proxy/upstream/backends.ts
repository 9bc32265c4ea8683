import { isIP } from 'node:net'
import type { BackendResource } from '../../model/resources.ts'
import { joinAuthority } from './authority.ts'
import type { Destination } from './destination.ts'
import { plainAddress } from './endpoint.ts'

/** A GatewayBackend as requests need it. */
export type CompiledDestination =
  | { readonly type: 'static'; readonly destination: Destination }
  | { readonly type: 'dynamic' }
  | { readonly type: 'unsupported'; readonly message: string }

/** GatewayBackends by `namespace/name`. */
export class BackendTable {
  readonly #backends = new Map<string, CompiledDestination>()

  set({ namespace, name, destination }: BackendResource): void {
    const compiled =
      destination.type === 'static'
        ? { type: 'static' as const, destination: staticDestination(destination) }
        : destination
    this.#backends.set(`${namespace}/${name}`, compiled)
  }

  remove({ namespace, name }: BackendResource): void {
    this.#backends.delete(`${namespace}/${name}`)
  }

  find(name: string): CompiledDestination | undefined {
    return this.#backends.get(name)
  }
}

function staticDestination({ host, port }: { host: string; port: number }): Destination {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  return {
    address: plainAddress(bare, port),
    others: [],
    authority: joinAuthority(bare, port, 'http'),
    isHostname: isIP(bare) === 0,
  }
}
