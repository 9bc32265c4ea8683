/** One world: a configuration, clients, upstreams, and what must hold at the end. */
import type { AccessRecord } from '../../src/gateway/proxy/telemetry/types.ts'
import { inhabit } from '../virtual-time/globals.ts'
import { Random } from '../virtual-time/random.ts'
import { Machine, World } from '../virtual-time/world.ts'
import { checkExchange, type Violation } from './checks.ts'
import { type Configuration, randomConfiguration } from './configuration.ts'
import {
  chatRequest,
  chatResponse,
  Exchange,
  randomRequest,
  randomResponse,
  tagOf,
} from './exchange.ts'
import { Gateway } from './gateway.ts'
import { type ClientPlan, Http1Client } from './http1-client.ts'
import type { Message } from './http1-reader.ts'
import { Http2Client } from './http2-client.ts'
import { ModelChat } from './model.ts'
import { Network } from './network.ts'
import { plugIn } from './sockets.ts'
import { Upstream } from './upstream.ts'

export interface Outcome {
  readonly seed: number
  readonly failure: string | undefined
  /** Identifies the whole schedule. */
  readonly digest: string
  readonly trace: readonly string[]
  readonly steps: number
  readonly exchanges: number
}

/** Time in which clients begin. */
const startMs = 500
/** Time after which every exchange must be over. */
const limitMs = 180_000
/** Time after the last client in which everything that waits must end. */
const quietMs = 400_000

export async function simulate(seed: number): Promise<Outcome> {
  const world = new World(seed)
  inhabit(world)
  const onError = (error: unknown) => {
    world.fail(`an error was not handled: ${error instanceof Error ? error.stack : String(error)}`)
  }
  process.on('unhandledRejection', onError)
  process.on('uncaughtException', onError)
  const simulation = new Simulation(world)
  let failure: string | undefined
  try {
    await simulation.run()
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error)
  } finally {
    process.off('unhandledRejection', onError)
    process.off('uncaughtException', onError)
  }
  const { steps, trace, digest } = world
  const exchanges = simulation.exchanges.size
  return { seed, failure, digest, trace, steps, exchanges }
}

class Simulation {
  readonly exchanges = new Map<string, Exchange>()
  readonly #world: World
  readonly #random: Random
  readonly #network: Network
  readonly #machine = new Machine('gateway')
  readonly #records: AccessRecord[] = []
  readonly #upstreams: Upstream[] = []
  readonly #clients: (Http1Client | Http2Client)[] = []

  constructor(world: World) {
    this.#world = world
    this.#random = new Random(world.seed, 'plan')
    this.#network = new Network(world, new Random(world.seed, 'network'))
  }

  async run(): Promise<void> {
    const world = this.#world
    plugIn(this.#network, this.#machine)
    const gateway = await Gateway.start(world, this.#machine, {
      onDone: (record) => this.#record(record),
      onBug: (error) => world.fail(`a bug: ${error.stack} ${String(error.cause)}`),
    })
    try {
      const configuration = randomConfiguration(this.#random)
      const applied = gateway.apply(configuration.resources)
      await world.runUntil(1)
      await applied
      this.#startUpstreams(configuration)
      this.#startClients(configuration)
      const waiting = () => this.#clients.filter(({ isOver }) => !isOver)
      while (waiting().length > 0 && world.now < limitMs) await world.runUntil(world.now + 1_000)
      for (const client of waiting()) this.#violate('progress', client.describe())
      await world.runUntil(world.now + quietMs)
      this.#check(configuration, gateway)
      await world.runUntil(world.now)
    } finally {
      gateway.stop()
      await world.runUntil(world.now + 1_000)
    }
    for (const { name, open } of this.#upstreams) {
      if (open > 0) this.#violate('progress', `${name} has ${open} connections after the gateway`)
    }
    await world.runUntil(world.now)
  }

  #record(record: AccessRecord): void {
    this.#world.note(`${record.method} ${record.path}: ${record.status} ${record.error ?? ''}`)
    // The plane uses the object again.
    this.#records.push({ ...record })
  }

  #violate(invariant: Violation['invariant'], text: string): void {
    this.#world.fail(`${invariant}: ${text}`)
  }

  #startUpstreams({ upstreams }: Configuration): void {
    const random = new Random(this.#world.seed, 'upstreams')
    for (const [name, address] of upstreams) {
      const owner = {
        world: this.#world,
        network: this.#network,
        random,
        exchangeOf: ({ startLine, fields }: Message) => {
          const tag = /~c\d+r\d+~/.exec(`${startLine} ${fields.flat().join(' ')}`)
          return this.exchanges.get(tag?.[0] ?? '')
        },
        onRequest: ({ tag }: Exchange) => this.#world.note(`${name} has read ${tag}`),
        fail: (text: string) => this.#violate('framing', text),
      }
      this.#upstreams.push(new Upstream(name, address, owner))
    }
  }

  #startClients({ port, routes }: Configuration): void {
    const random = this.#random
    const clientRandom = new Random(this.#world.seed, 'clients')
    const most = random.pick([300, 5_000, 70_000])
    const faultChance = random.pick([0, 0, 0.1, 0.4])
    for (let at = 0, count = 1 + random.below(6); at < count; at++) {
      const own: Exchange[] = []
      for (let index = 0, requests = 1 + random.below(5); index < requests; index++) {
        const tag = tagOf(at, index)
        const route = random.pick(routes)
        const plain = Array.from({ length: 1 + route.retries }, () =>
          randomResponse(random, tag, most, faultChance, route.mayEnd),
        )
        const chat = route.isModel ? new ModelChat(random, tag) : undefined
        const request =
          chat === undefined
            ? randomRequest(random, tag, route.name, most)
            : chatRequest(tag, route.name, chat)
        const plans = chat === undefined ? plain : plain.map((plan) => chatResponse(plan, chat))
        const exchange = new Exchange(tag, route.name, request, plans, chat)
        own.push(exchange)
        this.exchanges.set(tag, exchange)
      }
      const plan: ClientPlan = {
        exchanges: own,
        isPipelined: random.chance(0.3),
        pauseMs: random.chance(0.6) ? 0 : random.between(1, 300),
        readPauseMs: random.chance(0.8) ? 0 : random.between(1, 100),
        fault: random.chance(0.2)
          ? {
              kind: random.pick(['reset', 'close', 'stop reading'] as const),
              afterBytes: 1 + random.below(random.pick([200, 2_000, 20_000])),
            }
          : undefined,
      }
      const Client = random.chance(0.35) ? Http2Client : Http1Client
      for (const exchange of own) {
        const route = routes.find(({ name }) => name === exchange.route)
        exchange.sharesConnection = Client === Http2Client || route?.isHttp2 === true
      }
      const client = new Client(`client${at}`, plan, {
        world: this.#world,
        network: this.#network,
        random: clientRandom,
        fail: (text) => this.#violate('framing', text),
      })
      this.#clients.push(client)
      this.#world.schedule(client.machine, random.between(1, startMs), () => client.connect(port))
    }
  }

  #check({ routes }: Configuration, { engine }: Gateway): void {
    for (const exchange of this.exchanges.values()) {
      const route = routes.find(({ name }) => name === exchange.route)
      if (route === undefined) throw new Error(`there is no route ${exchange.route}`)
      checkExchange(exchange, route, this.#records, ({ invariant, text }) =>
        this.#violate(invariant, text),
      )
    }
    const { connectionsOpen, coreTraps } = engine.counters
    if (connectionsOpen > 0) {
      this.#violate('progress', `${connectionsOpen} client connections are open without a client`)
    }
    if (coreTraps > 0) this.#violate('truth', `the core has trapped ${coreTraps} times`)
    for (const { endpoint, busy } of engine.poolStates()) {
      if (busy > 0) this.#violate('progress', `${busy} connections to ${endpoint} are busy`)
    }
  }
}
