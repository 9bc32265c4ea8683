/**
 * Rewrites the addresses of an agent card, so that clients reach the agent through the gateway.
 *
 *   the client asked   https://gateway/weather/.well-known/agent-card.json
 *   the agent got      http://agent:8000/.well-known/agent-card.json
 *   so                 http://agent:8000/a2a  →  https://gateway/weather/a2a
 */
import { isObject, type JsonObject } from '../../../../ground/base/json-object.ts'

/** Addresses of one document at the gateway and at the agent. */
interface CardPlace {
  /** Scheme and authority of the gateway, as the client sees it. */
  readonly origin: string
  /** Path that the client asked for. */
  readonly clientPath: string
  /** Path that the agent got. */
  readonly agentPath: string
  /** Host and port of the backend. */
  readonly agent: string
}

interface RewrittenCard {
  readonly card: JsonObject
  /** Addresses that were removed because this route does not reach them. */
  readonly dropped: readonly string[]
}

/** The prefixes in which the paths of the client and the agent differ. The rest of the paths is the same. */
function prefixesOf({
  clientPath,
  agentPath,
}: CardPlace): readonly [client: string, agent: string] {
  const client = clientPath.split('/')
  const agent = agentPath.split('/')
  while (client.length > 1 && agent.length > 1 && client.at(-1) === agent.at(-1)) {
    client.pop()
    agent.pop()
  }
  return [client.join('/'), agent.join('/')]
}

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

function readAddress(address: string): URL | undefined {
  const text = address.includes('://') ? address : `grpc://${address}`
  return URL.canParse(text) ? new URL(text) : undefined
}

const hostAndPort = ({ protocol, hostname, port }: URL): string =>
  `${hostname}:${port === '' ? (defaultPorts[protocol] ?? '') : port}`.toLowerCase()

/** What follows a prefix in whole segments; undefined if the path does not begin with it. */
function after(path: string, prefix: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  return rest === '' || rest.startsWith('/') ? rest : undefined
}

class AddressRewriter {
  readonly dropped: string[] = []
  readonly #place: CardPlace
  readonly #own: ReadonlySet<string>
  readonly #prefixes: readonly [client: string, agent: string]

  constructor(place: CardPlace, preferred: string | undefined) {
    this.#place = place
    this.#prefixes = prefixesOf(place)
    const first = preferred === undefined ? undefined : readAddress(preferred)
    const gateway = readAddress(place.origin)
    this.#own = new Set(
      [
        first && hostAndPort(first),
        gateway && hostAndPort(gateway),
        place.agent.toLowerCase(),
      ].filter((one) => one !== undefined),
    )
  }

  /** Returns the address at the gateway; undefined if the route does not reach it. */
  rewrite(address: unknown, binding: unknown): string | undefined {
    const found = typeof address === 'string' ? this.#at(address, binding) : undefined
    if (found === undefined) this.dropped.push(String(address).slice(0, 200))
    return found
  }

  #at(address: string, binding: unknown): string | undefined {
    const url = readAddress(address)
    if (url === undefined || !this.#own.has(hostAndPort(url))) return undefined
    const { origin } = this.#place
    const [client, agent] = this.#prefixes
    if (binding === 'GRPC') {
      // The paths of gRPC are fixed, so they cannot be below a prefix.
      if (client !== '' || agent !== '') return undefined
      return address.includes('://') ? origin : origin.slice(origin.indexOf('://') + 3)
    }
    // An address that is already one of the gateway stays.
    const rest =
      after(url.pathname, agent) ?? (client === '' ? undefined : after(url.pathname, client))
    return rest === undefined ? undefined : `${origin}${client}${rest}${url.search}`
  }
}

const interfacesIn = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : []

/** Whether a JSON value is an agent card of version 0.3 or 1.0. */
export const isCard = (value: unknown): value is JsonObject =>
  isObject(value) && (typeof value.url === 'string' || Array.isArray(value.supportedInterfaces))

/**
 * Returns the card with the addresses of the gateway, without its signatures, which no longer match. Undefined if
 * no interface is left.
 */
export function rewriteCard(card: JsonObject, place: CardPlace): RewrittenCard | undefined {
  const { signatures: _, ...rest } = card
  const interfaces = interfacesIn(card.supportedInterfaces)
  const preferred = card.url ?? interfaces[0]?.url
  const rewriter = new AddressRewriter(place, typeof preferred === 'string' ? preferred : undefined)
  const rewritten = (list: unknown, binding: 'protocolBinding' | 'transport') =>
    interfacesIn(list).flatMap((one) => {
      const url = rewriter.rewrite(one.url, one[binding])
      return url === undefined ? [] : [{ ...one, url }]
    })
  const supported = rewritten(card.supportedInterfaces, 'protocolBinding')
  const additional: readonly JsonObject[] = rewritten(card.additionalInterfaces, 'transport')
  const main = card.url === undefined ? undefined : mainOf(card, rewriter, additional)
  if (supported.length === 0 && main === undefined) return undefined
  const { url: __, preferredTransport: ___, ...others } = rest
  return {
    card: {
      ...others,
      ...main,
      ...('supportedInterfaces' in card && { supportedInterfaces: supported }),
      ...('additionalInterfaces' in card && { additionalInterfaces: additional }),
    },
    dropped: rewriter.dropped,
  }
}

/** The preferred interface of version 0.3. If the route does not reach it, the first additional one is used. */
function mainOf(
  { url, preferredTransport }: JsonObject,
  rewriter: AddressRewriter,
  additional: readonly JsonObject[],
): JsonObject | undefined {
  const own = rewriter.rewrite(url, preferredTransport)
  if (own !== undefined) {
    return { url: own, ...(preferredTransport !== undefined && { preferredTransport }) }
  }
  const [other] = additional
  return other && { url: other.url, preferredTransport: other.transport }
}
