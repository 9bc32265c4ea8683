/**
 * The way of a connection that is forwarded unread: listener, route, backend, address. It is as long
 * as the way of requests in `phases.ts`, without anything that needs a request to be read.
 */
import { performance } from 'node:perf_hooks'
import type { ServerStream, StreamHandler } from '../engine/streams/stream-types.ts'
import type { UpstreamAddress } from '../engine/upstream/upstream-address.ts'
import { GatewayError } from '../errors.ts'
import type { RoutePlace } from '../exchange/exchange.ts'
import { pickBackend } from './config/rules.ts'
import type { CompiledStreamBackend, StreamPlacement } from './config/streams.ts'
import type { PhaseContext } from './phase-context.ts'
import { toGatewayError } from './rescue.ts'
import type { StreamFacts, Telemetry } from './telemetry/types.ts'
import { joinAuthority } from './upstream/authority.ts'
import { type Destination, movedTo } from './upstream/destination.ts'
import { resolveDestination } from './upstream/resolve.ts'

/** What is known of one stream. */
class StreamWalk {
  place: RoutePlace | undefined
  placement: StreamPlacement | undefined
  backend: CompiledStreamBackend | undefined
  destination: Destination | undefined
  address: UpstreamAddress | undefined
  addressesLeft: readonly UpstreamAddress[] = []
  error: GatewayError | undefined
  /** Of the configuration that it was looked up in last. */
  generation = -1
  over = false
}

export class StreamForwarder implements StreamHandler {
  readonly #context: PhaseContext
  readonly #telemetry: Telemetry

  constructor(context: PhaseContext, telemetry: Telemetry) {
    this.#context = context
    this.#telemetry = telemetry
  }

  onStream(stream: ServerStream): void {
    const walk = new StreamWalk()
    stream.state = walk
    try {
      const found = this.#resolve(stream, walk)
      if (!(found instanceof Promise)) {
        this.#connect(stream, walk, found)
        return
      }
      found.then(
        (destination) => walk.over || this.#connect(stream, walk, destination),
        (error: unknown) => walk.over || this.#refuse(stream, walk, error),
      )
    } catch (error) {
      this.#refuse(stream, walk, error)
    }
  }

  #resolve(stream: ServerStream, walk: StreamWalk): Destination | Promise<Destination> {
    const { config, random } = this.#context
    walk.generation = config.generation
    const placement = this.#place(stream, walk)
    if (placement === undefined) throw new GatewayError('route_not_found')
    walk.placement = placement
    walk.place = placement.place
    const { closed } = placement.listener.frontend()
    if (closed !== undefined) throw new GatewayError('policy_unenforceable', closed)
    walk.backend = pickBackend(placement, random())
    if (walk.backend === undefined) throw new GatewayError('no_backends')
    const authority = joinAuthority(stream.serverName ?? '', stream.port, 'https')
    const name = { authority, scheme: 'https' as const }
    const transport = stream.protocol === 'udp' ? 'UDP' : 'TCP'
    return resolveDestination(this.#context, placement, walk.backend, name, { transport })
  }

  /** Where a stream belongs now. */
  #place({ port, protocol, serverName, tls }: ServerStream, walk?: StreamWalk) {
    const { config } = this.#context
    const listener = config.streamListener(port, protocol, serverName)
    if (listener === undefined) return undefined
    // Configuration has changed during the handshake.
    if (tls !== undefined && tls.listener !== listener.resource.key) return undefined
    if (walk !== undefined) walk.place = listener.place
    return config.streams.find(listener, serverName)
  }

  #connect(stream: ServerStream, walk: StreamWalk, destination: Destination): void {
    try {
      destination.endpoint?.begin(this.#context.cap)
    } catch (error) {
      this.#refuse(stream, walk, error)
      return
    }
    walk.destination = destination
    walk.address = destination.address
    if (stream.protocol === 'udp') {
      // Datagrams make no connection that could be raced: the others are for one that is refused.
      walk.addressesLeft = destination.race?.rivalsOf(destination.address) ?? []
    }
    this.#begin(stream, destination.address, destination)
  }

  #begin(stream: ServerStream, address: UpstreamAddress, destination: Destination): void {
    const { race, settings } = destination
    stream.connect(address, { race, connectTimeoutMs: settings.connectTimeoutMs ?? 0 })
  }

  #refuse(stream: ServerStream, walk: StreamWalk, thrown: unknown): void {
    walk.error = toGatewayError(thrown)
    stream.refuse(walk.error)
  }

  onStreamError(stream: ServerStream, error: GatewayError): void {
    const walk = walkOf(stream)
    const [next, ...left] = walk.addressesLeft
    if (next === undefined || walk.destination === undefined) {
      stream.refuse(error)
      return
    }
    walk.addressesLeft = left
    walk.address = next
    this.#begin(stream, next, walk.destination)
  }

  onElsewhere(stream: ServerStream, address: UpstreamAddress): void {
    const walk = walkOf(stream)
    walk.address = address
    if (walk.destination === undefined) return
    walk.destination = movedTo(walk.destination, address, this.#context.cap)
  }

  isCurrent(stream: ServerStream): boolean {
    const { config } = this.#context
    const walk = walkOf(stream)
    if (walk.generation === config.generation) return true
    walk.generation = config.generation
    if (this.#place(stream) !== walk.placement) return false
    const endpoint = walk.destination?.endpoint
    const target = walk.backend?.target
    if (endpoint === undefined || target?.type !== 'service') return true
    const name = walk.backend?.name ?? ''
    return config.services.endpoints(name, target.port, 'UDP').all.includes(endpoint)
  }

  onStreamDone(stream: ServerStream): void {
    const walk = walkOf(stream)
    walk.over = true
    walk.destination?.endpoint?.end()
    this.#telemetry.onStreamDone(stream, factsOf(stream, walk))
  }
}

function walkOf(stream: ServerStream): StreamWalk {
  if (!(stream.state instanceof StreamWalk)) stream.state = new StreamWalk()
  return stream.state as StreamWalk
}

function factsOf(stream: ServerStream, walk: StreamWalk): StreamFacts {
  const { place, backend, address } = walk
  const error = stream.error ?? walk.error
  return {
    gateway: place?.gateway,
    listener: place?.listener,
    route: place?.route,
    rule: place?.rule,
    endpoint: address?.label ?? address?.pool,
    backend: backend?.label,
    reason: error?.row.reason ?? 'Upstream',
    error: error?.message,
    bug: error?.code === 'bug' ? error : undefined,
    durationMs: performance.now() - stream.startedAt,
  }
}
