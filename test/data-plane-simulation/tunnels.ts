/** Tunnels of a world: an HTTP/2 client that opens them with CONNECT and ends them in every way, and their destination. */
import type { Resource } from '../../src/ground/model/resources.ts'
import { match, policy, route, service, slice, toService } from '../proxy/plane-resources.ts'
import { Random } from '../virtual-time/random.ts'
import { Machine, type World } from '../virtual-time/world.ts'
import { Http2Peer } from './http2-peer.ts'
import type { End, Network } from './network.ts'
import { Upstream } from './upstream.ts'

/** Share of worlds with tunnels. */
const share = 0.15
const name = 'tunnels'
const host = '10.0.6.1'
const port = 9_000
/** Error code CANCEL. */
const cancel = 0x8
/** How long a destination still sends after the end of the client, if the tunnel goes on. */
const restMs = 500
const probeMs = 100
/** Time after which the client closes its connection. All its tunnels have ended by then. */
const openMs = 30_000

const head = [
  [':method', 'CONNECT'],
  [':authority', 'tunnels.test:443'],
] as const

const endings = ['end', 'reset', 'end and reset', 'end and reset', 'lost'] as const
type Ending = (typeof endings)[number]

export class TunnelTraffic {
  readonly #world: World
  readonly #network: Network
  readonly #random: Random
  /** How the client ends each tunnel, by the first bytes that it sends. */
  readonly #endings = new Map<string, Ending>()
  readonly #isUsed: boolean
  readonly upstreams: Upstream[] = []

  constructor(world: World, network: Network) {
    this.#world = world
    this.#network = network
    this.#random = new Random(world.seed, name)
    this.#isUsed = this.#random.chance(share)
  }

  get resources(): readonly Resource[] {
    if (!this.#isUsed) return []
    const edge = { kind: 'Gateway', namespace: 'infra', name: 'edge' }
    return [
      policy(edge, 'connect', { mode: 'Route' }, { name, section: 'frontend' }),
      service(name, { ports: [{ name: 'http', port: 80 }] }),
      slice(name, port, { endpoints: [{ address: host, ready: true }] }),
      route({ name, matches: [match('/')], to: [toService(name)] }),
    ]
  }

  start(gatewayPort: number): void {
    if (!this.#isUsed) return
    const serve = (_isHttp2: boolean, upstream: Upstream, end: End) => this.#serve(upstream, end)
    this.upstreams.push(new Upstream(new Machine(name), { host, port }, this.#network, serve))
    const client = new Machine('tunnel client')
    this.#world.schedule(client, this.#random.between(1, 500), () =>
      this.#connect(client, gatewayPort),
    )
  }

  #connect(client: Machine, gatewayPort: number): void {
    const [world, random] = [this.#world, this.#random]
    this.#network.connect(client, { host: '10.0.0.1', port: gatewayPort }, (end) => {
      if (end === undefined) return
      const peer = new Http2Peer(
        'client',
        end,
        { window: 65_535, windowPauseMs: 0 },
        {
          world,
          random,
          onHead: (stream) => {
            const ending = random.pick(endings)
            const text = `tunnel ${stream}`
            this.#endings.set(text, ending)
            peer.sendData(stream, Buffer.from(text), false, () => {})
            world.schedule(client, random.between(0, 200), () => finish(peer, stream, ending))
          },
          onData: () => {},
          onReset: () => {},
          onGoAway: () => {},
          onClose: () => {},
          fail: (text) => world.fail(`framing: a client of tunnels: ${text}`),
        },
      )
      for (let at = 0, count = 1 + random.below(8); at < count; at++) {
        peer.sendHead(2 * at + 1, head, false)
      }
      world.schedule(client, openMs, () => peer.close('close'))
    })
  }

  /** Returns the received bytes, and continues to send after the end of the client until writes fail. */
  #serve(upstream: Upstream, end: End): void {
    let text = ''
    let isOver = false
    const leave = () => {
      if (isOver) return
      isOver = true
      end.close()
      upstream.open--
    }
    const probe = (leftMs: number) => {
      if (isOver) return
      // A client that has only ended its stream still reads.
      if (leftMs <= 0 && this.#endings.get(text) === 'end') leave()
      else if (leftMs > -100 * restMs) {
        end.write(Buffer.from('x'))
        this.#world.schedule(upstream.machine, probeMs, () => probe(leftMs - probeMs))
      }
    }
    end.receiver = {
      onBytes: (bytes) => {
        text += bytes.toString('latin1')
        end.write(Buffer.from(bytes))
      },
      onEnd: () => probe(restMs),
      onReset: leave,
    }
  }
}

function finish(peer: Http2Peer, stream: number, ending: Ending): void {
  if (ending === 'end') peer.sendData(stream, Buffer.alloc(0), true, () => {})
  else if (ending === 'reset') peer.reset(stream, cancel)
  else if (ending === 'end and reset') peer.endAndReset(stream, cancel)
  else peer.close('reset')
}
