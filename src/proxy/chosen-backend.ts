import type { ChosenBackend } from '../exchange/exchange.ts'
import type { NamedTarget } from './config/rules.ts'
import type { ConfigStore } from './config/store.ts'

/** Made once per backendRef, and again where its backend has become one of another type. */
const known = new WeakMap<NamedTarget, ChosenBackend>()

/** What expressions call `backend`. */
export function chosenBackend(named: NamedTarget, config: ConfigStore): ChosenBackend {
  const type = typeOf(named, config)
  let chosen = known.get(named)
  if (chosen?.type !== type) {
    const protocol = type === 'ai' ? 'llm' : type === 'mcp' ? 'mcp' : 'http'
    chosen = { name: named.label ?? named.name, type, protocol }
    known.set(named, chosen)
  }
  return chosen
}

function typeOf({ target, name }: NamedTarget, config: ConfigStore): ChosenBackend['type'] {
  if (target.type === 'service' || target.type === 'pool') return 'service'
  const found = config.backends.find(name)?.type
  return found === undefined || found === 'unsupported' ? 'unknown' : found
}
