/** MCP in a world: its servers, its clients, and what must hold of both. */
import type { AccessRecord } from '../../../src/gateway/proxy/telemetry/types.ts'
import { Random } from '../../virtual-time/random.ts'
import { Machine, type World } from '../../virtual-time/world.ts'
import type { Violation } from '../checks.ts'
import type { Network } from '../network.ts'
import { Upstream } from '../upstream.ts'
import { checkLists, checkRenewed, checkRequest, checkSessions } from './checks.ts'
import { McpClient } from './client.ts'
import {
  type McpPlan,
  mcpPort,
  mcpResources,
  randomMcp,
  randomMcpClient,
  withOutages,
} from './plan.ts'
import { type McpParty, type McpRequest, partyTag } from './request.ts'
import { McpServer } from './server.ts'

/** Time in which clients begin. */
const startMs = 1_500

type Report = (invariant: Violation['invariant'], text: string) => void

export class McpTraffic {
  readonly #world: World
  readonly #network: Network
  readonly #report: Report
  readonly #random: Random
  readonly #itemRandom: Random
  readonly #plan: McpPlan | undefined
  readonly #requests = new Map<string, McpRequest>()
  readonly #servers: McpServer[] = []
  readonly #clients: McpClient[] = []
  readonly upstreams: Upstream[] = []
  #hasDied = false

  constructor(world: World, network: Network, report: Report) {
    this.#world = world
    this.#network = network
    this.#report = report
    this.#random = new Random(world.seed, 'mcp')
    this.#itemRandom = new Random(world.seed, 'mcp items')
    const plan = randomMcp(this.#random, this.#itemRandom)
    this.#plan = plan && withOutages(plan, new Random(world.seed, 'mcp outages'))
  }

  get resources() {
    return this.#plan === undefined ? [] : mcpResources(this.#plan)
  }

  get exchanges(): number {
    return this.#requests.size
  }

  /** Clients that are not done. */
  get waiting(): readonly McpClient[] {
    return this.#clients.filter(({ isOver }) => !isOver)
  }

  /** `keepsConnections`: whether clients send several requests on one connection. */
  start(port: number, keepsConnections: boolean): void {
    const plan = this.#plan
    if (plan === undefined) return
    const [world, network, requests] = [this.#world, this.#network, this.#requests]
    const fail = this.#report
    for (const one of plan.servers) {
      const machine = new Machine(one.name)
      const random = new Random(world.seed, one.name)
      const owner = { world, random, requests, count: plan.servers.length, fail }
      const server = new McpServer(one, machine, owner)
      this.#servers.push(server)
      const address = { host: one.host, port: mcpPort }
      const serve = (
        _isHttp2: boolean,
        upstream: Upstream,
        end: Parameters<McpServer['serve']>[1],
      ) => server.serve(upstream, end)
      this.upstreams.push(new Upstream(machine, address, network, serve))
    }
    const sessionIds = new Map<string, McpParty>()
    for (let at = 0, count = 1 + this.#random.below(4); at < count; at++) {
      const party = {
        tag: partyTag(at),
        plan: randomMcpClient(this.#random, plan, this.#itemRandom),
      }
      const client = new McpClient(
        party,
        plan,
        { world, network, requests, sessionIds, keepsConnections, fail },
        port,
      )
      this.#clients.push(client)
      world.schedule(client.machine, this.#random.between(1, startMs), () => void client.run())
    }
  }

  /** Called if the process of the gateway ends. */
  excuseAll(why: string): void {
    this.#hasDied = true
    for (const client of this.#clients) client.onDeath(why)
    for (const request of this.#requests.values()) {
      if (!request.isOver || request.head === undefined) request.excuse ??= why
      request.mayLackRecord = true
    }
  }

  check(records: readonly AccessRecord[]): void {
    const plan = this.#plan
    if (plan === undefined) return
    const requests = [...this.#requests.values()]
    for (const request of requests) checkRequest(request, plan, records, this.#report)
    // What a worker knew of sessions besides their ids is lost with it.
    if (this.#hasDied) return
    checkLists(requests, plan, this.#report)
    checkSessions(this.#servers, requests, plan, this.#report)
    checkRenewed(this.#servers, requests, plan, this.#report)
  }
}
