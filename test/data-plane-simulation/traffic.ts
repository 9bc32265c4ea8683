/** Random clients of a world, and what becomes of each of their exchanges. */
import type { Random } from '../virtual-time/random.ts'
import { keyField, randomKind } from './api-keys.ts'
import type { SimulatedRoute } from './configuration.ts'
import type { Emphasis } from './emphasis.ts'
import {
  chatRequest,
  chatResponse,
  Exchange,
  randomRequest,
  randomResponse,
  type ServiceParts,
  tagOf,
} from './exchange.ts'
import { clientFormats, vendorFormatFor } from './formats/index.ts'
import type { ClientPlan } from './http1-client.ts'
import { ModelChat } from './model.ts'
import { Authorization } from './services/authorization.ts'
import { Processing, type ProcessorChances } from './services/processing.ts'
import { Counting } from './services/rate-limits.ts'
import { Judgement } from './services/webhooks.ts'

/** What all exchanges of a world have in common. */
export interface Traffic {
  /** Largest body, in bytes. */
  readonly most: number
  /** How often upstreams break off. */
  readonly faultChance: number
  readonly processors: ProcessorChances
  /** Chooses API keys. */
  readonly keyRandom: Random
}

/** Share of worlds with bodies that no buffer holds as a whole. */
const largeShare = 0.05
const largest = 900_000

export const randomTraffic = (random: Random, keyRandom: Random, emphasis: Emphasis): Traffic => ({
  keyRandom,
  processors: {
    faults: emphasis.of('processor fault', 0.35),
    modes: emphasis.of('processor modes', 0.4),
  },
  most: keyRandom.chance(emphasis.isShort ? 0 : largeShare)
    ? largest
    : random.pick(emphasis.isShort ? [300, 5_000, 300_000] : [300, 5_000, 70_000, 300_000]),
  faultChance: random.pick([0, 0, 0.1, 0.4]),
})

export function randomClient(
  random: Random,
  client: number,
  routes: readonly SimulatedRoute[],
  traffic: Traffic,
  isHttp2: boolean,
): ClientPlan {
  const pauseMs = random.chance(0.6) ? 0 : random.between(1, 300)
  // Slow readers of large bodies show what the gateway holds for them.
  const isQuick = random.chance(traffic.most > 70_000 ? 0.4 : 0.8)
  const readPauseMs = isQuick ? 0 : random.between(1, 100)
  const exchanges = Array.from({ length: 1 + random.below(5) }, (_, index) => {
    const route = random.pick(routes)
    const exchange = randomExchange(random, tagOf(client, index), route, traffic)
    if (route.mirror !== undefined) {
      const plan = randomResponse(random, exchange.tag, traffic.most, traffic.faultChance, true)
      exchange.mirrored = new Exchange(
        exchange.tag,
        route.name,
        exchange.request,
        [plan],
        undefined,
        exchange,
      )
    }
    const { session: settings } = route
    exchange.session = settings && { settings, sent: undefined, got: undefined }
    exchange.isHttp2Client = isHttp2
    exchange.sharesConnection = isHttp2 || route.isHttp2
    exchange.hasSlowClient = pauseMs > 0 || readPauseMs > 0
    return exchange
  })
  return {
    exchanges,
    isPipelined: random.chance(0.3),
    pauseMs,
    readPauseMs,
    fault: random.chance(0.2)
      ? {
          kind: random.pick(['reset', 'close', 'stop reading'] as const),
          afterBytes: 1 + random.below(random.pick([200, 2_000, 20_000])),
        }
      : undefined,
  }
}

function randomExchange(
  random: Random,
  tag: string,
  route: SimulatedRoute,
  traffic: Traffic,
): Exchange {
  const { most, faultChance, keyRandom } = traffic
  const services = randomServices(random, route, traffic)
  const keyKind = route.keys === undefined ? 'none' : randomKind(keyRandom)
  const key = route.keys && keyField(route.name, keyKind)
  const keyless = randomRequest(random, tag, route.name, most)
  const plain = key === undefined ? keyless : { ...keyless, fields: [...keyless.fields, key] }
  const attempts = route.isModel ? route.upstreams.length : 1
  const plans = Array.from({ length: attempts * (1 + route.retries) }, () =>
    randomResponse(random, tag, most, faultChance, route.mayEnd),
  )
  const own = { ...services, keyKind }
  if (!route.isModel) return new Exchange(tag, route.name, plain, plans, undefined, own)
  const { request: asked, response: said } = services.judgements
  const client = random.pick(Object.values(clientFormats))
  const formats = { client, vendor: vendorFormatFor(route.vendor, client) }
  const changes = {
    request: (text: string) => asked?.change(text) ?? text,
    response: (text: string) => said?.change(text) ?? text,
  }
  const chat = new ModelChat(random, tag, formats, changes, route.scope)
  const request = chatRequest(plain, tag, route.name, chat)
  const responses = plans.map((plan) => chatResponse(random, plan, tag, chat))
  return new Exchange(tag, route.name, request, responses, chat, own)
}

function randomServices(
  random: Random,
  route: SimulatedRoute,
  { processors }: Traffic,
): ServiceParts {
  const { authorizer, isProcessed, isModel, webhooks, isCounted } = route
  return {
    authorization:
      authorizer === undefined ? undefined : new Authorization(random, authorizer === 'grpc-auth'),
    processing: isProcessed ? new Processing(random, !isModel, processors) : undefined,
    counting: isCounted ? new Counting(random) : undefined,
    judgements: {
      request: webhooks.request ? new Judgement(random) : undefined,
      response: webhooks.response ? new Judgement(random) : undefined,
    },
  }
}
