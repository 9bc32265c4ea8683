/** From keys of resources to the objects that users wrote. */
import type { ObjectKey } from '../model/names.ts'
import type { ResourceKey } from '../model/resources.ts'

/** Most resources that the message about one object names. */
const maxNamed = 4

/**
 * The object whose status tells of a resource; undefined where there is none, or where listeners
 * tell by themselves. Keys are those of src/model/resources.ts.
 */
function objectOf(key: ResourceKey): ObjectKey | undefined {
  const [type, ...rest] = key.split('/')
  const [first = '', second = '', third = ''] = rest
  switch (type) {
    case 'route':
    case 'stream':
      return `${first}/${second}/${third}`
    case 'gateway':
      // No resource: a proxy that refuses a change set without saying what of it.
      return `Gateway/${first}/${second}`
    case 'backend':
      return `GatewayBackend/${first}/${second}`
    case 'pool':
      return `InferencePool/${first}/${second}`
    case 'policy': {
      // Written inside its target, a policy has no object of its own.
      const inside = /\/inline:([A-Za-z]+)\//.exec(key)?.[1]
      return `${inside ?? 'GatewayPolicy'}/${second}/${third}`
    }
    default:
      return undefined
  }
}

/** Messages by object, in order of the resources' keys, each message once. */
export function byObject(
  rejected: ReadonlyMap<ResourceKey, { readonly message: string }>,
): ReadonlyMap<ObjectKey, string> {
  const found = new Map<ObjectKey, Set<string>>()
  for (const key of [...rejected.keys()].sort()) {
    const object = objectOf(key)
    const message = rejected.get(key)?.message
    if (object === undefined || message === undefined) continue
    found.set(object, (found.get(object) ?? new Set()).add(message))
  }
  return new Map([...found].map(([object, messages]) => [object, listed([...messages])]))
}

function listed(messages: readonly string[]): string {
  const more = messages.length - maxNamed
  const named = messages.slice(0, maxNamed).join('; ')
  return more > 0 ? `${named}; and ${more} more` : named
}
