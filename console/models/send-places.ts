/** Where playgrounds can send requests: the routes that lead to models and to MCP servers. */
import type { ModelProvider } from '../../src/ground/model/model-providers.ts'
import { objectText } from '../../src/ground/model/names.ts'
import type {
  BackendResource,
  ListenerResource,
  Resource,
  RouteResource,
} from '../../src/ground/model/resources.ts'
import type { Moment } from '../log/loaded-log.ts'

export interface SendPlace {
  /** Such as `/v1 on port 8080, HTTPRoute ai/chat`. */
  readonly title: string
  readonly scheme: 'http' | 'https'
  readonly port: number
  /** Value of the header `host`. */
  readonly host: string
  /** Path of the match, without a slash at its end. */
  readonly path: string
  /** `namespace/name` of the backend. */
  readonly backend: string
  /** Models that the backend names; clients may be able to ask for others. */
  readonly models: readonly string[]
}

export function sendPlacesModel(moment: Moment) {
  const all = [...moment.resources.entries()].map(([, { resource }]) => resource)
  return { chat: placesOf(all, 'ai'), tools: placesOf(all, 'mcp') }
}

function placesOf(all: readonly Resource[], type: 'ai' | 'mcp'): SendPlace[] {
  const listeners = new Map(
    all.flatMap((one) => (one.type === 'listener' ? [[one.key, one] as const] : [])),
  )
  const backends = all.filter((one): one is BackendResource => {
    return one.type === 'backend' && one.destination.type === type
  })
  const places = all.flatMap((rule) => {
    if (rule.type !== 'route') return []
    const backend = backends.find(({ namespace, name }) =>
      rule.backends.some(({ target }) => {
        return target.type === 'backend' && target.namespace === namespace && target.name === name
      }),
    )
    return backend === undefined ? [] : placesOfRule(rule, backend, listeners)
  })
  return [...new Map(places.map((place) => [place.title, place])).values()]
}

function placesOfRule(
  { route, attachments, matches }: RouteResource,
  backend: BackendResource,
  listeners: ReadonlyMap<string, ListenerResource>,
): SendPlace[] {
  return attachments.flatMap(({ listener: key, hostnames }) => {
    const listener = listeners.get(key)
    if (listener === undefined) return []
    const { port, protocol } = listener
    const [hostname = ''] = hostnames
    const name = hostname.replace(/^\*/, 'any')
    return matches.map(({ path }) => ({
      title: `${name}${path.value} on port ${port}, ${objectText(route)}`,
      scheme: protocol === 'HTTPS' ? ('https' as const) : ('http' as const),
      port,
      host: name === '' ? `127.0.0.1:${port}` : name,
      path: path.value.replace(/\/+$/, ''),
      backend: `${backend.namespace}/${backend.name}`,
      models: modelsOf(backend),
    }))
  })
}

function modelsOf({ destination }: BackendResource): string[] {
  if (destination.type !== 'ai') return []
  const { groups, models = [] } = destination
  const served = models.filter(({ isInternal }) => !isInternal).map(({ match }) => match)
  const fixed = groups.flat().flatMap(({ config }: ModelProvider) => config.model ?? [])
  return [...new Set([...served.filter((name) => !name.includes('*')), ...fixed])]
}
