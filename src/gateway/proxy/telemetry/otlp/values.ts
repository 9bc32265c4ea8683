/** Attributes, values and times in the messages of the OpenTelemetry protocol. */
import {
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import {
  type AnyValueSchema,
  ExportResponseSchema,
  type KeyValueSchema,
} from '../../../../../proto/gen/called/otlp_trace_pb.ts'
import type { Attribute, AttributeValue } from '../../../../ground/exchange/observe.ts'

/**
 * Converts a time in milliseconds of `performance.now()`. A double is precise enough for microseconds since 1970, but
 * not for nanoseconds.
 */
export function unixNanoseconds(at: number): bigint {
  return BigInt(Math.round((performance.timeOrigin + at) * 1_000)) * 1_000n
}

export function keyValue([key, value]: Attribute): MessageInitShape<typeof KeyValueSchema> {
  return { key, value: anyValue(value) }
}

const minInt = -(2n ** 63n)
const maxInt = 2n ** 63n - 1n

export function anyValue(value: AttributeValue): MessageInitShape<typeof AnyValueSchema> {
  switch (typeof value) {
    case 'string':
      return { value: { case: 'stringValue', value } }
    case 'boolean':
      return { value: { case: 'boolValue', value } }
    case 'number':
      return { value: { case: 'doubleValue', value } }
    case 'bigint':
      return value >= minInt && value <= maxInt
        ? { value: { case: 'intValue', value } }
        : { value: { case: 'stringValue', value: value.toString() } }
    default:
      return Array.isArray(value)
        ? { value: { case: 'arrayValue', value: { values: value.map(anyValue) } } }
        : { value: { case: 'kvlistValue', value: { values: Object.entries(value).map(keyValue) } } }
  }
}

/** What a collector that answers with success has rejected. The messages of all signals have the same numbers. */
export function readPartialSuccess(
  bytes: Uint8Array,
  isJson = false,
): { readonly rejected: number; readonly message: string } {
  try {
    const { partialSuccess } = isJson
      ? partialSuccessOfJson(Buffer.from(bytes).toString())
      : fromBinary(ExportResponseSchema, bytes)
    const { rejected = 0n, errorMessage = '' } = partialSuccess ?? {}
    return { rejected: Math.max(0, Number(rejected)), message: errorMessage }
  } catch {
    return { rejected: 0, message: '' }
  }
}

const rejectedNames = ['rejectedDataPoints', 'rejectedLogRecords', 'rejectedSpans']

/** In JSON, the name of the number depends on the signal. */
function partialSuccessOfJson(text: string) {
  const { partialSuccess } = JSON.parse(text) as {
    readonly partialSuccess?: Readonly<Record<string, string | number>>
  }
  const name = rejectedNames.find((one) => partialSuccess?.[one] !== undefined)
  const rejected = BigInt(partialSuccess?.[name ?? ''] ?? 0)
  return { partialSuccess: { rejected, errorMessage: String(partialSuccess?.errorMessage ?? '') } }
}

/** Encodes a request. In JSON, ids of traces and spans are hexadecimal, unlike other bytes in protobuf JSON (OTLP/HTTP). */
export function encodeRequest<Schema extends DescMessage>(
  schema: Schema,
  message: MessageShape<Schema>,
  isJson: boolean,
): Uint8Array {
  if (!isJson) return toBinary(schema, message)
  const isId = (name: string) => name === 'traceId' || name === 'spanId'
  const text = JSON.stringify(toJson(schema, message), (name, value) =>
    isId(name) && typeof value === 'string' ? Buffer.from(value, 'base64').toString('hex') : value,
  )
  return Buffer.from(text)
}

/** Returns the approximate size of attributes in bytes. */
export const sizeOfAttributes = (attributes: readonly Attribute[]): number =>
  attributes.reduce((sum, [name, value]) => sum + name.length + sizeOf(value), 0)

/** Type, length and number of a field. */
const perValue = 8

export function sizeOf(value: AttributeValue): number {
  if (typeof value === 'string') return perValue + Buffer.byteLength(value)
  if (typeof value !== 'object') return 2 * perValue
  if (!Array.isArray(value)) return perValue + sizeOfAttributes(Object.entries(value))
  return value.reduce<number>((sum, item) => sum + sizeOf(item), perValue)
}
