/** Forwards connections without reading them. Finds the listener, route, backend and address. */
import { performance } from 'node:perf_hooks'
import type { ServerStream, StreamHandler } from '../../engines/http/contracts/streams.ts'
import type { UpstreamAddress } from '../../engines/http/sockets/upstream-address.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type { RoutePlace } from '../../ground/exchange/exchange.ts'
import { pickBackend } from './config/rules.ts'
import { connectionRefusal } from './config/shared-ports.ts'
import type { CompiledStreamBackend, StreamPlacement } from './config/streams.ts'
import { toGatewayError } from './request/error-response.ts'
import type { GatewayRuntime } from './request/runtime.ts'
import type { StreamRecord, Telemetry } from './telemetry/types.ts'
import { joinAuthority } from './upstream/authority.ts'
import { type Destination, movedTo } from './upstream/destination.ts'

/** The state of one stream. */
class StreamContext {
  place: RoutePlace | undefined
  placement: StreamPlacement | undefined
  backend: CompiledStreamBackend | undefined
  destination: Destination | undefined
  address: UpstreamAddress | undefined
  addressesLeft: readonly UpstreamAddress[] = []
  error: GatewayError | undefined
  /** Generation of the configuration when the route of the stream was last looked up. */
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
    const { listener } = placement
    const { closed, client } = listener.frontend()
    if (closed !== undefined) throw new GatewayError('policy_unenforceable', closed)
    const isUdp = stream.protocol === 'udp'
    const refused = isUdp
      ? client.refusal?.(stream)
      : connectionRefusal(config.portConflicts, listener, stream)
    if (refused !== undefined) throw new GatewayError('network_unauthorized', refused)
    context.backend = pickBackend(placement, random())
    if (context.backend === undefined) throw new GatewayError('no_backends')
    const authority = joinAuthority(stream.serverName ?? '', stream.port, 'https')
    const name = { authority, scheme: 'https' as const }
    const transport = isUdp ? 'UDP' : 'TCP'
    return this.#runtime.kinds.resolve(placement, context.backend, name, { transport })
  }

  /** Finds the route of a stream in the current configuration. */
  #place({ port, protocol, serverName, tls }: ServerStream, context?: StreamContext) {
    const { config } = this.#runtime
    const listener = config.streamListener(port, protocol, serverName)
    if (listener === undefined) return undefined
    // The listener of the handshake was replaced by another one in the meantime.
    if (tls !== undefined && tls.listener !== listener.resource.key) return undefined
    if (context !== undefined) context.place = listener.place
    return config.streams.find(listener, serverName)
  }

  #connect(stream: ServerStream, context: StreamContext, destination: Destination): void {
    try {
      if (stream.protocol === 'udp' && destination.settings.tunnel !== undefined) {
        throw new GatewayError('backend_unsupported', 'UDP is not supported with `backend.tunnel`')
      }
      destination.endpoint?.begin(this.#runtime.cap)
    } catch (error) {
      this.#refuse(stream, context, error)
      return
    }
    context.destination = destination
    context.address = destination.address
    if (stream.protocol === 'udp') {
      // There is no connection to race for UDP. Another address is used if the first one refuses datagrams.
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
    const { backend, destination } = context
    const endpoint = destination?.endpoint
    if (backend === undefined || endpoint === undefined) return true
    return this.#runtime.kinds.of(backend)?.hasEndpoint?.(backend, endpoint) ?? true
  }

  onStreamDone(stream: ServerStream): void {
    const context = contextOf(stream)
    context.over = true
    context.destination?.endpoint?.end()
    this.#telemetry.onStreamDone(stream, streamRecordOf(stream, context))
  }
}

function contextOf(stream: ServerStream): StreamContext {
  if (!(stream.state instanceof StreamContext)) stream.state = new StreamContext()
  return stream.state as StreamContext
}

function streamRecordOf(stream: ServerStream, context: StreamContext): StreamRecord {
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
