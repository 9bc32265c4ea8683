/** Sends one probe of an active health check. */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { CallListener, OpenCall } from '../../../engines/http/contracts/calls.ts'
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import { bufferOf } from '../../../ground/base/buffers.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { ActiveCheckRules, HealthProbe } from '../../../ground/exchange/connection.ts'
import type { HeaderFields } from '../../../ground/exchange/exchange.ts'
import { fieldOf, frameMessage, MessageReader, readStatus } from '../callouts/grpc-framing.ts'
import type { RequestMaker } from '../request/runtime.ts'

/** Maximum size of a response that is read so that its connection can be used again. */
const maxBodyBytes = 64 * 1024
/** `SERVING` of grpc.health.v1.HealthCheckResponse.ServingStatus. */
const serving = 1

/** Called once. `problem` is undefined if the endpoint is healthy. */
type OnResult = (problem: string | undefined) => void

interface ProbedEndpoint {
  readonly address: UpstreamAddress
  /** Value of Host, unless the rules have one. */
  readonly authority: string
  readonly rules: Pick<ActiveCheckRules, 'probe' | 'timeoutMs'>
  readonly connectTimeoutMs: number
}

/** Sends a probe. The returned function cancels it; `onResult` is then not called. */
export function sendProbe(
  engine: RequestMaker,
  endpoint: ProbedEndpoint,
  onResult: OnResult,
): () => void {
  const { address, rules, authority, connectTimeoutMs } = endpoint
  const { probe, timeoutMs } = rules
  if (probe.type === 'tcp') {
    return engine.connect(address, timeoutMs, (error) => onResult(error?.message))
  }
  const listener =
    probe.type === 'http' ? new HttpListener(probe.statuses, onResult) : new GrpcListener(onResult)
  const body = probe.type === 'grpc' ? checkRequest(probe.service) : undefined
  const head = headOf(probe, authority, body?.length)
  const timeouts = {
    connectTimeoutMs: Math.min(connectTimeoutMs || timeoutMs, timeoutMs),
    timeoutMs,
  }
  listener.call = engine.call({ address, head, body, ...timeouts }, listener)
  return () => listener.cancel()
}

function headOf(
  probe: Exclude<HealthProbe, { readonly type: 'tcp' }>,
  authority: string,
  length: number | undefined,
): string {
  const lines =
    probe.type === 'http'
      ? [
          `${probe.method} ${probe.path} HTTP/1.1`,
          `host: ${probe.hostname ?? authority}`,
          ...Object.entries(probe.headers).map(([name, value]) => `${name}: ${value}`),
          ...(probe.method === 'POST' ? ['content-length: 0'] : []),
        ]
      : [
          'POST /grpc.health.v1.Health/Check HTTP/1.1',
          `host: ${authority}`,
          'content-type: application/grpc',
          'te: trailers',
          `content-length: ${length}`,
        ]
  return `${lines.join('\r\n')}\r\nuser-agent: Sluice-HealthCheck\r\n\r\n`
}

/** Writes a grpc.health.v1.HealthCheckRequest, framed. */
function checkRequest(service: string): Uint8Array {
  const writer = new BinaryWriter()
  if (service !== '') writer.tag(1, WireType.LengthDelimited).string(service)
  return frameMessage(writer.finish())
}

/** Returns the status of a grpc.health.v1.HealthCheckResponse; undefined if it is malformed. */
function servingStatus(message: Uint8Array): number | undefined {
  try {
    const reader = new BinaryReader(message)
    let status = 0
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag()
      if (field === 1 && type === WireType.Varint) status = reader.int32()
      else reader.skip(type, field)
    }
    return status
  } catch {
    return undefined
  }
}

/** Reads a response of limited size. */
abstract class ProbeListener implements CallListener {
  call: OpenCall | undefined
  readonly #onResult: OnResult
  #isOver = false
  #bytes = 0

  constructor(onResult: OnResult) {
    this.#onResult = onResult
  }

  abstract onHead(status: number, headers: HeaderFields): void

  onBytes(bytes: Uint8Array): void {
    this.#bytes += bytes.length
    if (this.#bytes <= maxBodyBytes) return
    this.report(`the response has more than ${maxBodyBytes} bytes`)
    this.call?.close()
  }

  onEnd(_trailers?: string): void {
    this.report('the response ended early')
  }

  onFailure(error: GatewayError): void {
    this.report(error.message)
  }

  cancel(): void {
    this.#isOver = true
    this.call?.close()
  }

  protected report(problem: string | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#onResult(problem)
  }
}

/** The status decides. The body is only read so that the connection can be used again. */
class HttpListener extends ProbeListener {
  readonly #statuses: readonly number[]

  constructor(statuses: readonly number[], onResult: OnResult) {
    super(onResult)
    this.#statuses = statuses
  }

  onHead(status: number): void {
    this.report(this.#statuses.includes(status) ? undefined : `status ${status}`)
  }
}

class GrpcListener extends ProbeListener {
  readonly #reader = new MessageReader()
  #early: ReturnType<typeof readStatus>
  #status: number | undefined

  onHead(status: number, headers: HeaderFields): void {
    this.#early = readStatus((name) => headers.get(name))
    if (status !== 200) this.report(`status ${status}`)
  }

  override onBytes(bytes: Uint8Array): void {
    super.onBytes(bytes)
    const messages = this.#reader.read(bufferOf(bytes))
    if (typeof messages === 'string') this.report(messages)
    else for (const message of messages) this.#status = servingStatus(message)
  }

  override onEnd(trailers = ''): void {
    const end = readStatus((name) => fieldOf(trailers, name)) ?? this.#early
    if (end === undefined) this.report('the response has no gRPC status')
    else if (end.code !== 0) this.report(`gRPC status ${end.code} ${end.message}`.trim())
    else this.report(this.#status === serving ? undefined : `serving status ${this.#status}`)
  }
}
