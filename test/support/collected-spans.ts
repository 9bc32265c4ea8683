/** What a collector of spans was sent (OTLP), as plain data. */
import { createServer, type Server } from 'node:http'
import { fromBinary } from '@bufbuild/protobuf'
import {
  type AnyValue,
  ExportTraceServiceRequestSchema,
  type KeyValue,
  type Span,
} from '../../proto/gen/called/otlp_trace_pb.ts'
import { waitFor } from './wait-for.ts'

export interface Received {
  readonly resource: Record<string, unknown>
  readonly span: Span
  readonly attributes: Record<string, unknown>
}

/** Everything that a collector was sent. */
export class Collected {
  readonly spans: Received[] = []
  /** How many requests brought them. */
  exports = 0
  readonly contentTypes = new Set<string>()

  take(body: Uint8Array): void {
    this.exports++
    for (const { resource, scopeSpans } of fromBinary(ExportTraceServiceRequestSchema, body)
      .resourceSpans) {
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        const attributes = plain(span.attributes)
        this.spans.push({ resource: plain(resource?.attributes ?? []), span, attributes })
      }
    }
  }

  /** The span of the gateway for the request with this path, once it has come. */
  server(path: string): Promise<Received> {
    return waitFor(`the span of ${path}`, () =>
      this.spans.find(
        ({ span, attributes }) =>
          span.kind === 2 && String(attributes['http.path']).startsWith(path),
      ),
    )
  }

  clients({ span }: Received): Received[] {
    const parent = hex(span.spanId)
    return this.spans.filter((one) => one.span.kind === 3 && hex(one.span.parentSpanId) === parent)
  }
}

export const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

export function plain(attributes: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]))
}

export function plainValue(value: AnyValue | undefined): unknown {
  switch (value?.value.case) {
    case 'arrayValue':
      return value.value.value.values.map(plainValue)
    case 'kvlistValue':
      return plain(value.value.value.values)
    default:
      return value?.value.value
  }
}

/** A collector over HTTP that accepts everything; pass it to `useListening`. */
export function collectingServer(collected: {
  take(body: Uint8Array, url?: string): void
}): Server {
  return createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      collected.take(Buffer.concat(chunks), request.url)
      response.end()
    })
  })
}
