/**
 * A collector of metrics (OTLP over HTTP and gRPC). It reads protobuf with the field numbers of opentelemetry-proto 1.x by a
 * reader of its own, and refuses everything that they do not allow.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  Server as GrpcServer,
  type handleUnaryCall,
  ServerCredentials,
  status,
} from '@grpc/grpc-js'

type Kind = 'text' | 'hex' | 'double' | 'fixed64' | 'int' | 'sint' | 'bool'
interface Field {
  readonly name: string
  readonly kind: Kind | Message
  readonly isList?: true
}
type Message = () => Readonly<Record<number, Field>>

const list = (name: string, kind: Kind | Message): Field => ({ name, kind, isList: true })
const one = (name: string, kind: Kind | Message): Field => ({ name, kind })

const anyValue: Message = () => ({ 1: one('string', 'text'), 2: one('bool', 'bool') })
const keyValue: Message = () => ({ 1: one('key', 'text'), 2: one('value', anyValue) })
const numberPoint: Message = () => ({
  2: one('start', 'fixed64'),
  3: one('time', 'fixed64'),
  4: one('double', 'double'),
  6: one('integer', 'fixed64'),
  7: list('attributes', keyValue),
})
const exemplar: Message = () => ({
  2: one('time', 'fixed64'),
  3: one('double', 'double'),
  4: one('spanId', 'hex'),
  5: one('traceId', 'hex'),
})
const exponentialBuckets: Message = () => ({ 1: one('offset', 'sint'), 2: list('counts', 'int') })
const exponentialPoint: Message = () => ({
  1: list('attributes', keyValue),
  2: one('start', 'fixed64'),
  3: one('time', 'fixed64'),
  4: one('count', 'fixed64'),
  5: one('sum', 'double'),
  6: one('scale', 'sint'),
  7: one('zeros', 'fixed64'),
  8: one('positive', exponentialBuckets),
  11: list('exemplars', exemplar),
  14: one('zeroThreshold', 'double'),
})
const histogramPoint: Message = () => ({
  2: one('start', 'fixed64'),
  3: one('time', 'fixed64'),
  4: one('count', 'fixed64'),
  5: one('sum', 'double'),
  6: list('buckets', 'fixed64'),
  7: list('bounds', 'double'),
  8: list('exemplars', exemplar),
  9: list('attributes', keyValue),
})
const points =
  (kind: Message): Message =>
  () => ({
    1: list('points', kind),
    2: one('temporality', 'int'),
    3: one('isMonotonic', 'bool'),
  })
const metric: Message = () => ({
  1: one('name', 'text'),
  2: one('description', 'text'),
  3: one('unit', 'text'),
  5: one('gauge', points(numberPoint)),
  7: one('sum', points(numberPoint)),
  9: one('histogram', points(histogramPoint)),
  10: one('exponential', points(exponentialPoint)),
})
const scope: Message = () => ({ 1: one('name', 'text'), 2: one('version', 'text') })
const scopeMetrics: Message = () => ({ 1: one('scope', scope), 2: list('metrics', metric) })
const resource: Message = () => ({ 1: list('attributes', keyValue) })
const resourceMetrics: Message = () => ({
  1: one('resource', resource),
  2: list('scopes', scopeMetrics),
})
const request: Message = () => ({ 1: list('resources', resourceMetrics) })

interface Read {
  readonly value: unknown
  readonly at: number
}

function varint(bytes: Buffer, from: number): { readonly value: number; readonly at: number } {
  let value = 0
  for (let at = from, scale = 1; at < bytes.length; at++, scale *= 128) {
    const byte = bytes[at] ?? 0
    value += (byte & 127) * scale
    if (byte < 128) return { value, at: at + 1 }
  }
  throw new Error('a number is cut off')
}

function scalar(bytes: Buffer, kind: Kind, wire: number, from: number): Read {
  if (wire === 1 && (kind === 'double' || kind === 'fixed64')) {
    const value = kind === 'double' ? bytes.readDoubleLE(from) : Number(bytes.readBigInt64LE(from))
    return { value, at: from + 8 }
  }
  const { value, at } = varint(bytes, from)
  if (wire === 0 && kind === 'int') return { value, at }
  if (wire === 0 && kind === 'sint') return { value: value % 2 ? -(value + 1) / 2 : value / 2, at }
  if (wire === 0 && kind === 'bool') return { value: value === 1, at }
  if (wire === 2 && kind === 'hex')
    return { value: bytes.toString('hex', at, at + value), at: at + value }
  if (wire !== 2 || kind !== 'text') throw new Error(`wire type ${wire} for ${kind}`)
  return { value: bytes.toString('utf8', at, at + value), at: at + value }
}

/** @throws if a field is unknown, has another wire type, or is cut off */
function read(bytes: Buffer, message: Message): Record<string, unknown> {
  const fields = message()
  const result: Record<string, unknown> = {}
  for (const { name, isList } of Object.values(fields)) if (isList) result[name] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = varint(bytes, at)
    const field = fields[Math.floor(tag.value / 8)]
    if (field === undefined) throw new Error(`unknown field ${Math.floor(tag.value / 8)}`)
    const values: unknown[] = []
    const wire = tag.value % 8
    if (
      typeof field.kind === 'function' ||
      (wire === 2 && field.kind !== 'text' && field.kind !== 'hex')
    ) {
      const length = varint(bytes, tag.at)
      at = length.at + length.value
      if (wire !== 2 || at > bytes.length) throw new Error(`${field.name} is cut off`)
      const inner = bytes.subarray(length.at, at)
      if (typeof field.kind === 'function') values.push(read(inner, field.kind))
      else
        for (let one = 0; one < inner.length; ) {
          const found = scalar(inner, field.kind, field.kind === 'int' ? 0 : 1, one)
          values.push(found.value)
          one = found.at
        }
    } else {
      const found = scalar(bytes, field.kind, wire, tag.at)
      values.push(found.value)
      at = found.at
    }
    const known = result[field.name]
    if (Array.isArray(known)) known.push(...values)
    else result[field.name] = values.at(-1)
  }
  return result
}

/** Names of JSON members that differ from those of the tables above. */
const jsonNames: Readonly<Record<string, string>> = {
  resources: 'resourceMetrics',
  scopes: 'scopeMetrics',
  points: 'dataPoints',
  temporality: 'aggregationTemporality',
  start: 'startTimeUnixNano',
  time: 'timeUnixNano',
  integer: 'asInt',
  double: 'asDouble',
  buckets: 'bucketCounts',
  bounds: 'explicitBounds',
  exponential: 'exponentialHistogram',
  zeros: 'zeroCount',
  counts: 'bucketCounts',
  string: 'stringValue',
  bool: 'boolValue',
}

/** @throws if a member is unknown, or if an integer of 64 bits is no text */
function fromJson(given: Record<string, unknown>, message: Message): Record<string, unknown> {
  const fields = Object.values(message())
  const names = fields.map(({ name }) => jsonNames[name] ?? name)
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`unknown member ${unknown}`)
  const result: Record<string, unknown> = {}
  for (const { name, kind, isList } of fields) {
    const value = given[jsonNames[name] ?? name]
    if (value === undefined && isList) result[name] = []
    if (value === undefined) continue
    const read = (one: unknown) => {
      if (typeof kind === 'function') return fromJson(one as Record<string, unknown>, kind)
      if (kind !== 'fixed64') return one
      if (typeof one !== 'string') throw new Error(`${name} is no text`)
      return Number(one)
    }
    result[name] = Array.isArray(value) ? value.map(read) : read(value)
  }
  return result
}

export interface Point {
  readonly start?: number
  readonly time: number
  readonly integer?: number
  readonly double?: number
  readonly count?: number
  readonly sum?: number
  readonly buckets?: readonly number[]
  readonly bounds?: readonly number[]
  readonly scale?: number
  readonly zeros?: number
  readonly positive?: { readonly offset: number; readonly counts: readonly number[] }
  readonly exemplars?: readonly { traceId: string; spanId: string; double: number }[]
  readonly labels: Readonly<Record<string, string>>
}

export interface ReceivedMetric {
  readonly type: 'gauge' | 'sum' | 'histogram' | 'exponential'
  readonly unit: string
  /** 1: delta, 2: cumulative. */
  readonly temporality: number | undefined
  readonly points: readonly Point[]
}

interface Attribute {
  readonly key: string
  readonly value: { readonly string: string }
}

const labelsOf = (attributes: readonly Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.string]))

/** What a collector does with a request. */
type Behavior = 'take' | 'busy' | 'refuse' | 'stall'

export class MetricCollector {
  behavior: Behavior = 'take'
  /** All requests that were taken, by metric. */
  readonly requests: Map<string, ReceivedMetric>[] = []
  resource: Readonly<Record<string, string>> = {}
  /** Requests of any result. */
  asked = 0
  readonly problems: string[] = []
  readonly headers: Record<string, string | string[] | undefined>[] = []
  readonly #server: Server
  readonly #grpc = new GrpcServer()
  #grpcPort = 0

  private constructor() {
    this.#server = createServer(async (asked, answer) => {
      this.asked++
      const pieces: Buffer[] = []
      for await (const piece of asked) pieces.push(piece as Buffer)
      const isRight = asked.method === 'POST' && asked.url === '/v1/metrics'
      const isJson = asked.headers['content-type'] === 'application/json'
      if (!isRight) this.problems.push(`${asked.method} ${asked.url}`)
      this.headers.push(asked.headers)
      if (this.behavior === 'stall') return
      if (this.behavior !== 'take') {
        answer.writeHead(this.behavior === 'busy' ? 503 : 400).end()
        return
      }
      try {
        const body = Buffer.concat(pieces)
        this.#take(isJson ? fromJson(JSON.parse(body.toString()), request) : read(body, request))
      } catch (error) {
        this.problems.push((error as Error).message)
      }
      if (isJson) answer.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      else answer.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  }

  static async start(): Promise<MetricCollector> {
    const collector = new MetricCollector()
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve))
    await collector.#listenGrpc()
    return collector
  }

  async #listenGrpc(): Promise<void> {
    const same = (bytes: Buffer) => bytes
    const method = {
      path: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
      requestStream: false,
      responseStream: false,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    } as const
    const handle: handleUnaryCall<Buffer, Buffer> = ({ request: body, metadata }, answer) => {
      this.asked++
      this.headers.push(metadata.getMap() as Record<string, string>)
      if (this.behavior === 'stall') return
      if (this.behavior !== 'take') {
        return answer({
          code: this.behavior === 'busy' ? status.UNAVAILABLE : status.INVALID_ARGUMENT,
        })
      }
      try {
        this.#take(read(body, request))
      } catch (error) {
        this.problems.push((error as Error).message)
      }
      answer(null, Buffer.alloc(0))
    }
    this.#grpc.addService({ export: method }, { export: handle })
    this.#grpcPort = await new Promise<number>((resolve, reject) => {
      const done = (error: Error | null, port: number) => (error ? reject(error) : resolve(port))
      this.#grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), done)
    })
  }

  get grpcUrl(): string {
    return `http://127.0.0.1:${this.#grpcPort}`
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  #take(message: Record<string, unknown>): void {
    // biome-ignore lint/suspicious/noExplicitAny: the tables above say what there is
    const { resources } = message as any
    for (const { resource: about, scopes } of resources) {
      this.resource = labelsOf(about.attributes)
      const found = new Map<string, ReceivedMetric>()
      for (const { name, unit = '', ...data } of scopes.flatMap(
        (one: { metrics: [] }) => one.metrics,
      )) {
        const types = ['gauge', 'sum', 'histogram', 'exponential'] as const
        const type = types.find((kind) => kind in data)
        if (type === undefined || found.has(name)) throw new Error(`${name} has no data, or twice`)
        const { points: all, temporality } = data[type]
        const labelled = all.map(({ attributes, ...point }: { attributes: Attribute[] }) => ({
          ...point,
          labels: labelsOf(attributes),
        }))
        found.set(name, { type, unit, temporality, points: labelled })
      }
      this.requests.push(found)
    }
  }

  /** The points of a metric in the last request that has it. */
  last(name: string): readonly Point[] {
    return this.requests.findLast((one) => one.has(name))?.get(name)?.points ?? []
  }

  close(): void {
    this.#grpc.forceShutdown()
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
