/** Attributes, values and times in the messages of the OpenTelemetry protocol. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  AnyValueSchema,
  KeyValueSchema,
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

function anyValue(value: AttributeValue): MessageInitShape<typeof AnyValueSchema> {
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

/** Returns the approximate size of attributes in bytes. */
export const sizeOfAttributes = (attributes: readonly Attribute[]): number =>
  attributes.reduce((sum, [name, value]) => sum + name.length + sizeOf(value), 0)

/** Type, length and number of a field. */
const perValue = 8

function sizeOf(value: AttributeValue): number {
  if (typeof value === 'string') return perValue + Buffer.byteLength(value)
  if (typeof value !== 'object') return 2 * perValue
  if (!Array.isArray(value)) return perValue + sizeOfAttributes(Object.entries(value))
  return value.reduce<number>((sum, item) => sum + sizeOf(item), perValue)
}
