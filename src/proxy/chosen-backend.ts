import type { ChosenBackend } from '../exchange/exchange.ts'
import type { NamedTarget } from './config/rules.ts'
import type { BackendKind } from './request/backend-kind.ts'

const unknown = { type: 'unknown', protocol: 'http' } as const

/** Made once per backendRef, and again if its backend has become one of another type. */
const known = new WeakMap<NamedTarget, ChosenBackend>()

/** What expressions call `backend`. */
export function chosenBackend(named: NamedTarget, kind: BackendKind | undefined): ChosenBackend {
  const { type, protocol } = kind ?? unknown
  let chosen = known.get(named)
  if (chosen?.type !== type) {
    chosen = { name: named.label ?? named.name, type, protocol }
    known.set(named, chosen)
  }
  return chosen
}
