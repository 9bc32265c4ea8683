/**
 * The way of a connection that is forwarded unread: listener, route, backend, address. It is as long
 * as the way of requests in `phases.ts`, without anything that needs a request to be read.
 */
import { performance } from 'node:perf_hooks'
import type { ServerStream, StreamHandler } from '../engine/contracts/streams.ts'
import type { UpstreamAddress } from '../engine/sockets/upstream-address.ts'
import { GatewayError } from '../errors/index.ts'
import type { RoutePlace } from '../exchange/exchange.ts'
import { pickBackend } from './config/rules.ts'
import type { CompiledStreamBackend, StreamPlacement } from './config/streams.ts'
import { toGatewayError } from './request/error-response.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import { resolveDestination } from './resolve.ts'
import type { StreamFacts, Telemetry } from './telemetry/types.ts'
import { joinAuthority } from './upstream/authority.ts'
import { type Destination, movedTo } from './upstream/destination.ts'

/** What is known of one stream. */
class StreamContext {
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
  readonly #runtime: GatewayRuntime
  readonly #telemetry: Telemetry

  constructor(runtime: GatewayRuntime, telemetry: Telemetry) {
    this.#runtime = runtime
    this.#telemetry = telemetry
  }

  onStream(stream: ServerStream): void {
    const context = new StreamContext()
    stream.state = context
    try {
      const found = this.#resolve(stream, context)
      if (!(found instanceof Promise)) {
        this.#connect(stream, context, found)
        return
      }
      found.then(
        (destination) => context.over || this.#connect(stream, context, destination),
        (error: unknown) => context.over || this.#refuse(stream, context, error),
      )
    } catch (error) {
      this.#refuse(stream, context, error)
    }
  }

  #resolve(stream: ServerStream, context: StreamContext): Destination | Promise<Destination> {
    const { config, random } = this.#runtime
    context.generation = config.generation
    const placement = this.#place(stream, context)
    if (placement === undefined) throw new GatewayError('route_not_found')
    context.placement = placement
    context.place = placement.place
    const { closed } = placement.listener.frontend()
    if (closed !== undefined) throw new GatewayError('policy_unenforceable', closed)
    context.backend = pickBackend(placement, random())
    if (context.backend === undefined) throw new GatewayError('no_backends')
    const authority = joinAuthority(stream.serverName ?? '', stream.port, 'https')
    const name = { authority, scheme: 'https' as const }
    const transport = stream.protocol === 'udp' ? 'UDP' : 'TCP'
    return resolveDestination(this.#runtime, placement, context.backend, name, { transport })
  }

  /** Where a stream belongs now. */
  #place({ port, protocol, serverName, tls }: ServerStream, context?: StreamContext) {
    const { config } = this.#runtime
    const listener = config.streamListener(port, protocol, serverName)
    if (listener === undefined) return undefined
    // Configuration has changed during the handshake.
    if (tls !== undefined && tls.listener !== listener.resource.key) return undefined
    if (context !== undefined) context.place = listener.place
    return config.streams.find(listener, serverName)
  }

  #connect(stream: ServerStream, context: StreamContext, destination: Destination): void {
    try {
      destination.endpoint?.begin(this.#runtime.cap)
    } catch (error) {
      this.#refuse(stream, context, error)
      return
    }
    context.destination = destination
    context.address = destination.address
    if (stream.protocol === 'udp') {
      // Datagrams make no connection that could be raced: the others are for one that is refused.
      context.addressesLeft = destination.race?.rivalsOf(destination.address) ?? []
    }
    this.#begin(stream, destination.address, destination)
  }

  #begin(stream: ServerStream, address: UpstreamAddress, destination: Destination): void {
    const { race, settings } = destination
    stream.connect(address, { race, connectTimeoutMs: settings.connectTimeoutMs ?? 0 })
  }

  #refuse(stream: ServerStream, context: StreamContext, thrown: unknown): void {
    context.error = toGatewayError(thrown)
    stream.refuse(context.error)
  }

  onStreamError(stream: ServerStream, error: GatewayError): void {
    const context = contextOf(stream)
    const [next, ...left] = context.addressesLeft
    if (next === undefined || context.destination === undefined) {
      stream.refuse(error)
      return
    }
    context.addressesLeft = left
    context.address = next
    this.#begin(stream, next, context.destination)
  }

  onAlternateAddress(stream: ServerStream, address: UpstreamAddress): void {
    const context = contextOf(stream)
    context.address = address
    if (context.destination === undefined) return
    context.destination = movedTo(context.destination, address, this.#runtime.cap)
  }

  isCurrent(stream: ServerStream): boolean {
    const { config } = this.#runtime
    const context = contextOf(stream)
    if (context.generation === config.generation) return true
    context.generation = config.generation
    if (this.#place(stream) !== context.placement) return false
    const endpoint = context.destination?.endpoint
    const target = context.backend?.target
    if (endpoint === undefined || target?.type !== 'service') return true
    const name = context.backend?.name ?? ''
    return config.services.endpoints(name, target.port, 'UDP').all.includes(endpoint)
  }

  onStreamDone(stream: ServerStream): void {
    const context = contextOf(stream)
    context.over = true
    context.destination?.endpoint?.end()
    this.#telemetry.onStreamDone(stream, factsOf(stream, context))
  }
}

function contextOf(stream: ServerStream): StreamContext {
  if (!(stream.state instanceof StreamContext)) stream.state = new StreamContext()
  return stream.state as StreamContext
}

function factsOf(stream: ServerStream, context: StreamContext): StreamFacts {
  const { place, backend, address } = context
  const error = stream.error ?? context.error
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
