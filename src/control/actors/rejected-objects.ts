import type { ObjectKey } from '../../ground/model/names.ts'
import type { ResourceKey } from '../../ground/model/resources.ts'

/** Maximum number of rejections in the message about one object. */
const maxListed = 4

/**
 * Returns the object whose status reports that a resource is rejected. Returns undefined if there is none, or
 * if the statuses of listeners report it. Keys are those of src/ground/model/resources.ts.
 */
function objectOf(key: ResourceKey): ObjectKey | undefined {
  const [type, ...rest] = key.split('/')
  const [first = '', second = '', third = ''] = rest
  switch (type) {
    case 'route':
    case 'stream':
      return `${first}/${second}/${third}`
    case 'gateway':
      // A rejection without a resource is about the whole Gateway.
      return `Gateway/${first}/${second}`
    case 'backend':
      return `GatewayBackend/${first}/${second}`
    case 'pool':
      return `InferencePool/${first}/${second}`
    case 'policy': {
      // A policy that is written inside its target has no object of its own.
      const inside = /\/inline:([A-Za-z]+)\//.exec(key)?.[1]
      return `${inside ?? 'GatewayPolicy'}/${second}/${third}`
    }
    default:
      return undefined
  }
}

/** Joins the messages for each object, in the order of the resources' keys, each message once. */
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
  const more = messages.length - maxListed
  const named = messages.slice(0, maxListed).join('; ')
  return more > 0 ? `${named}; and ${more} more` : named
}
