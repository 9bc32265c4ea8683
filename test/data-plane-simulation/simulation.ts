/** One world: a configuration, clients, upstreams, and what must hold at the end. */

import type { EngineCounters } from '../../src/engines/http/contracts/engine.ts'
import type { Engine } from '../../src/engines/http/engine.ts'
import { ModelRecord } from '../../src/gateway/backends/ai/call/model-record.ts'
import { RateBuckets } from '../../src/gateway/proxy/rate-buckets.ts'
import type { AccessRecord } from '../../src/gateway/proxy/telemetry/types.ts'
import type { GatewayError } from '../../src/ground/errors/index.ts'
import type { Resource } from '../../src/ground/model/resources.ts'
import { inhabit } from '../virtual-time/globals.ts'
import { Random } from '../virtual-time/random.ts'
import { Machine, World } from '../virtual-time/world.ts'
import { checkRequestLimit, checkTokenLimit, checkUsage, type RecordedUsage } from './accounts.ts'
import { keyPolicy } from './api-keys.ts'
import { checkExchange, type Violation } from './checks.ts'
import { type Configuration, randomConfiguration, type SimulatedRoute } from './configuration.ts'
import { randomChanges, withReplacements } from './configuration-changes.ts'
import {
  arrivalOf,
  ControlConnection,
  planControlLoss,
  randomControlLoss,
} from './control-connection.ts'
import { checkDecision, checkSimulated, openSimulator } from './decisions.ts'
import { Emphasis } from './emphasis.ts'
import { type Exchange, firstTagIn } from './exchange.ts'
import type { BilledUsage } from './formats/format.ts'
import { Gateway } from './gateway.ts'
import { Http1Client } from './http1-client.ts'
import type { Message } from './http1-reader.ts'
import { Http1Service } from './http1-upstream.ts'
import { Http2Client } from './http2-client.ts'
import { Http2Service } from './http2-upstream.ts'
import { McpTraffic } from './mcp/traffic.ts'
import { heldProblems, memoryProblems, mostHeld } from './memory.ts'
import { Network } from './network.ts'
import { problemOfArrival } from './policies.ts'
import { startServices } from './services/policy-services.ts'
import { checkSessions } from './sessions.ts'
import { plugIn } from './sockets.ts'
import { randomClient, randomTraffic } from './traffic.ts'
import { TunnelTraffic } from './tunnels.ts'
import { Upstream } from './upstream.ts'
import { excuseAll, randomWorkerFaults, type WorkerFaults, Workers } from './worker-faults.ts'

export interface Outcome {
  readonly seed: number
  readonly failure: string | undefined
  /** Identifies the whole schedule. */
  readonly digest: string
  readonly trace: readonly string[]
  readonly steps: number
  readonly exchanges: number
}

/** Share of worlds whose decisions are recorded, and simulated again. */
const recordedShare = 0.1
/** Pages of the core's memory: with the fewer, heads and bodies are written as texts and not from buffers. */
const memoryPages = [32, 96, 96, 96]
/** Time in which clients begin. */
const startMs = 500
/** Time after which every exchange must be over. */
const limitMs = 400_000
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
  const exchanges = simulation.exchangeCount
  return { seed, failure, digest, trace, steps, exchanges }
}

function usageIn({ record }: AccessRecord): BilledUsage | undefined {
  return record instanceof ModelRecord ? record.details.usage : undefined
}

class Simulation {
  readonly exchanges = new Map<string, Exchange>()
  readonly #world: World
  readonly #random: Random
  readonly #network: Network
  readonly #keyRandom: Random
  readonly #emphasis: Emphasis
  /** The wall clock when the world begins. */
  #epochMs = 0
  readonly #machine = new Machine('gateway')
  readonly #control = new Machine('control')
  readonly #records: (AccessRecord & RecordedUsage)[] = []
  readonly #upstreams: Upstream[] = []
  readonly #clients: (Http1Client | Http2Client)[] = []
  readonly #mcp: McpTraffic
  readonly #tunnels: TunnelTraffic
  /** Whether the configuration has lost an endpoint. */
  #hasMoved = false

  constructor(world: World) {
    this.#world = world
    this.#random = new Random(world.seed, 'plan')
    this.#keyRandom = new Random(world.seed, 'keys')
    this.#emphasis = new Emphasis(world.seed)
    this.#network = new Network(world, new Random(world.seed, 'network'))
    this.#tunnels = new TunnelTraffic(world, this.#network)
    this.#mcp = new McpTraffic(world, this.#network, (invariant, text) =>
      this.#violate(invariant, text),
    )
  }

  async run(): Promise<void> {
    const world = this.#world
    plugIn(this.#network, this.#machine)
    const faults = randomWorkerFaults(new Random(world.seed, 'worker faults'))
    const options = {
      buckets: new RateBuckets(undefined, () => world.monotonicMs(this.#machine)),
      onDone: (record: AccessRecord) => this.#record(record),
      records: this.#random.chance(recordedShare) && faults.deathAt === undefined && !faults.hasTwo,
      sharesPorts: faults.hasTwo,
      memoryPages: this.#random.pick(memoryPages),
      onBug: (error: GatewayError) => world.fail(`a bug: ${error.stack} ${String(error.cause)}`),
    }
    const first = await Gateway.start(world, options)
    // It starts beforehand, since its modules load at a time that no seed decides.
    const other =
      faults.deathAt !== undefined || faults.hasTwo ? await Gateway.start(world, options) : first
    const gateway = new Workers(faults.hasTwo ? [first, other] : [first])
    try {
      this.#epochMs = world.wallMs(this.#machine)
      const configuration = randomConfiguration(
        this.#random,
        this.#keyRandom,
        this.#emphasis,
        this.#epochMs,
      )
      const control = new ControlConnection(gateway)
      const others = [...this.#mcp.resources, ...this.#tunnels.resources]
      const applied = control.publish([...configuration.resources, ...others])
      await world.runUntil(1)
      await applied
      this.#startUpstreams(configuration)
      this.#startClients(configuration)
      // If two workers share the port, every request may reach the other one.
      this.#mcp.start(configuration.port, !faults.hasTwo)
      this.#tunnels.start(configuration.port)
      this.#upstreams.push(...this.#mcp.upstreams, ...this.#tunnels.upstreams)
      this.#planChanges(configuration, control)
      this.#planFaults(faults, configuration, gateway, other)
      const waiting = () => [...this.#clients.filter(({ isOver }) => !isOver), ...this.#mcp.waiting]
      while (waiting().length > 0 && world.now < limitMs) await world.runUntil(world.now + 1_000)
      for (const client of waiting()) this.#violate('progress', client.describe())
      await world.runUntil(world.now + quietMs)
      this.#check(configuration)
      for (const { engine } of gateway.serving) this.#checkQuiet(configuration, engine)
      this.#mcp.check(this.#records)
      for (const one of gateway.serving) await this.#checkDecisions(configuration, one)
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

  get exchangeCount(): number {
    return this.exchanges.size + this.#mcp.exchanges
  }

  #record(record: AccessRecord): void {
    this.#world.note(`${record.method} ${record.path}: ${record.status} ${record.error ?? ''}`)
    const exchange = this.#exchangeOf(record.path)
    if (exchange?.chat?.hasSecret(record.error ?? '') === true) {
      this.#violate('protection', `the log repeats a text of ${exchange.tag}: ${record.error}`)
    }
    // The plane uses the object again.
    this.#records.push({ ...record, at: this.#world.now, usage: usageIn(record) })
  }

  #violate(invariant: Violation['invariant'], text: string): void {
    this.#world.fail(`${invariant}: ${text}`)
  }

  #startUpstreams({ upstreams, routes }: Configuration): void {
    const { seed } = this.#world
    const mirrors = new Set(routes.map(({ mirror }) => mirror))
    for (const [name, address] of upstreams) {
      const isMirror = mirrors.has(name)
      const owner = {
        world: this.#world,
        network: this.#network,
        random: new Random(seed, name),
        exchangeOf: ({ startLine, fields }: Message) => {
          const exchange = this.#exchangeOf(`${startLine} ${fields.flat().join(' ')}`)
          return isMirror ? exchange?.mirrored : exchange
        },
        onRequest: ({ tag }: Exchange) => this.#world.note(`${name} has read ${tag}`),
        onArrival: (exchange: Exchange) => {
          const problem = problemOfArrival(exchange)
          if (problem !== undefined) this.#violate('protection', `${exchange.tag}: ${problem}`)
        },
        fail: (text: string) => this.#violate('framing', text),
      }
      const upstream = new Upstream(
        new Machine(name),
        address,
        this.#network,
        (isHttp2, server, end) => {
          const Service = isHttp2 ? Http2Service : Http1Service
          new Service(server, end, owner)
        },
      )
      this.#upstreams.push(upstream)
    }
    const services = startServices({
      world: this.#world,
      network: this.#network,
      random: new Random(seed, 'services'),
      exchangeOf: (text) => this.#exchangeOf(text),
      fail: (invariant, text) => this.#violate(invariant, text),
    })
    this.#upstreams.push(...services)
  }

  #planChanges({ resources, routes }: Configuration, control: ControlConnection): void {
    const random = new Random(this.#world.seed, 'changes')
    const world = this.#world
    const loss = randomControlLoss(new Random(world.seed, 'control'))
    if (loss !== undefined) planControlLoss(world, this.#control, loss, control)
    const apply = (atMs: number, text: string, changed: () => readonly Resource[]) => {
      // The control plane sends them, whatever happens to the worker.
      world.schedule(this.#control, atMs - world.now, () => {
        world.note(`the configuration changes: ${text}`)
        void control.publish(changed())
      })
    }
    const removals = routes.flatMap(({ name, keys }) =>
      keys === undefined
        ? []
        : [{ at: keys.removedAt, resource: keyPolicy(name, keys, this.#epochMs, false) }],
    )
    for (const { at, resource } of removals) apply(at, 'a key is removed', () => [resource])
    for (const { keys } of routes) {
      if (keys !== undefined) keys.removedAt = arrivalOf(keys.removedAt, loss)
    }
    for (const { afterMs, text, resources: changed } of randomChanges(random, resources)) {
      const now = world.now + afterMs
      this.#hasMoved ||= text === 'an endpoint is gone'
      apply(now, text, () => withReplacements(changed, removals, now))
    }
  }

  #planFaults(
    { deathAt, clocks }: WorkerFaults,
    { routes }: Configuration,
    gateway: Workers,
    next: Gateway,
  ): void {
    const world = this.#world
    if (deathAt !== undefined) {
      world.schedule(this.#control, deathAt, () => {
        world.note('the worker dies')
        excuseAll(this.exchanges.values(), this.#clients, this.#mcp)
        gateway.replace(next, this.#machine, this.#network)
      })
    }
    // These are decided by the wall clock, on purpose.
    if (routes.some(({ keys, session }) => keys ?? session?.absoluteTimeoutMs)) return
    for (const { at, byMs } of clocks) {
      world.schedule(this.#control, at, () => {
        world.note(`the clock of the gateway is set by ${byMs} ms`)
        this.#machine.skewMs += byMs
      })
    }
  }

  #exchangeOf(text: string): Exchange | undefined {
    return this.exchanges.get(firstTagIn(text) ?? '')
  }

  #startClients({ port, routes }: Configuration): void {
    const random = this.#random
    const clientRandom = new Random(this.#world.seed, 'clients')
    const traffic = randomTraffic(random, this.#keyRandom, this.#emphasis)
    const mostClients = this.#emphasis.isShort ? 2 : 6
    for (let at = 0, count = 1 + random.below(mostClients); at < count; at++) {
      const isHttp2 = random.chance(0.35)
      const plan = randomClient(random, at, routes, traffic, isHttp2)
      for (const exchange of plan.exchanges) this.exchanges.set(exchange.tag, exchange)
      const Client = isHttp2 ? Http2Client : Http1Client
      const client = new Client(`client${at}`, plan, {
        world: this.#world,
        network: this.#network,
        random: clientRandom,
        gateway: this.#machine,
        fail: (text) => this.#violate('framing', text),
      })
      this.#clients.push(client)
      this.#world.schedule(client.machine, random.between(1, startMs), () => client.connect(port))
    }
  }

  #check({ routes }: Configuration): void {
    for (const exchange of this.exchanges.values()) {
      const route = routes.find(({ name }) => name === exchange.route)
      if (route === undefined) throw new Error(`there is no route ${exchange.route}`)
      checkExchange(exchange, route, this.#records, ({ invariant, text }) =>
        this.#violate(invariant, text),
      )
      for (const problem of heldProblems(exchange, route)) {
        this.#violate('memory', `${exchange.tag}: ${problem}`)
      }
    }
    const exchanges = [...this.exchanges.values()]
    for (const route of routes) {
      const own = exchanges.filter((exchange) => exchange.route === route.name)
      this.#checkLimits(route, own)
      checkSessions(route, own, this.#hasMoved, (invariant, text) => this.#violate(invariant, text))
    }
    for (const exchange of exchanges) {
      const record = this.#usageOf(exchange)
      const say = (text: string) => this.#violate('accounts', `${exchange.tag}: ${text}`)
      if (exchange.chat !== undefined && record !== undefined) checkUsage(exchange, record, say)
    }
  }

  /** Checks that nothing is left of the traffic. */
  #checkQuiet({ routes }: Configuration, engine: Engine): void {
    const { connectionsOpen, coreTraps } = engine.counters
    if (connectionsOpen > 0) {
      this.#violate('progress', `${connectionsOpen} client connections are open without a client`)
    }
    this.#checkMemory(routes, engine.counters)
    if (coreTraps > 0) this.#violate('truth', `the core has trapped ${coreTraps} times`)
    for (const { endpoint, busy } of engine.poolStates()) {
      if (busy > 0) this.#violate('progress', `${busy} connections to ${endpoint} are busy`)
    }
  }

  #checkMemory(routes: readonly SimulatedRoute[], counters: EngineCounters): void {
    for (const problem of memoryProblems(counters)) this.#violate('memory', problem)
    const held = this.#network.mostWaiting(this.#machine)
    const most = mostHeld(routes, this.exchanges.values())
    if (held > most) this.#violate('memory', `a connection held ${held} bytes, more than ${most}`)
  }

  async #checkDecisions(
    { resources, routes }: Configuration,
    { decisions }: Gateway,
  ): Promise<void> {
    if (decisions === undefined) return
    const found = decisions.read((text) => this.#violate('truth', text))
    const versioned = resources.map((resource) => ({ resource, version: '1' }))
    const simulator = await openSimulator(versioned)
    for (const exchange of this.exchanges.values()) {
      const decision = found.get(exchange.tag)
      const logged = this.#records.find(({ path }) => path.includes(exchange.tag))
      const route = routes.find(({ name }) => name === exchange.route)
      if (logged === undefined || route === undefined) continue
      const say = (text: string) => this.#violate('truth', `${exchange.tag}: ${text}`)
      if (decision === undefined) {
        say('has no decision record')
        continue
      }
      checkDecision(exchange, route, decision, logged.status, say)
      // What-if knows no values of keys, and the policy of this configuration may not be that of the request.
      if (route.keys === undefined) await checkSimulated(simulator, exchange, decision, say)
    }
    simulator.close()
  }

  #checkLimits(route: SimulatedRoute, exchanges: readonly Exchange[]): void {
    const { limit, tokenLimit } = route
    const say = (text: string) => this.#violate('accounts', text)
    if (limit !== undefined) checkRequestLimit(limit, route, exchanges, say)
    if (tokenLimit !== undefined) {
      checkTokenLimit(tokenLimit, exchanges, (exchange) => this.#usageOf(exchange), say)
    }
  }

  #usageOf({ tag }: Exchange): RecordedUsage | undefined {
    return this.#records.find(({ path }) => path.includes(tag))
  }
}
