/** Codecs between fields of protobuf messages and members of plain objects. */
import { type DescField, ScalarType } from '@bufbuild/protobuf'
import { type BinaryReader, type BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { Repeated, sharedText } from './repeated.ts'

export type MessageMembers = Record<string, unknown>

/** Problems of an object that was read. Reading continues, since other parts may be usable. */
export class Findings {
  /** Whether a field was skipped because the descriptors do not contain it. */
  hasUnknownFields = false
  /** The first reason why the object cannot be used. */
  problem: string | undefined

  report(problem: string): void {
    this.problem ??= problem
  }

  merge({ hasUnknownFields, problem }: Findings): void {
    this.hasUnknownFields ||= hasUnknownFields
    this.problem ??= problem
  }

  get isEmpty(): boolean {
    return !this.hasUnknownFields && this.problem === undefined
  }
}

/** Writes and reads values of one scalar or message type. */
export interface ValueCodec {
  readonly wireType: WireType
  write(writer: BinaryWriter, value: unknown): void
  read(reader: BinaryReader, findings: Findings): unknown
}

/** Writes and reads one field of a message. */
export interface FieldCodec {
  write(writer: BinaryWriter, from: MessageMembers): void
  /** Reads a field and returns the object to read the next fields into. */
  read(
    into: MessageMembers,
    reader: BinaryReader,
    findings: Findings,
    wireType: WireType,
  ): MessageMembers
}

interface ScalarCodec extends ValueCodec {
  /** The value of a field that was not sent. */
  readonly zero: unknown
}

const scalars: Readonly<Partial<Record<ScalarType, ScalarCodec>>> = {
  [ScalarType.STRING]: {
    wireType: WireType.LengthDelimited,
    zero: '',
    write: (writer, value) => writer.string(value as string),
    read: (reader) => reader.string(true),
  },
  [ScalarType.BYTES]: {
    wireType: WireType.LengthDelimited,
    zero: new Uint8Array(),
    write: (writer, value) => writer.bytes(value as Uint8Array),
    // Copied, since the bytes of the change set may be released before the value.
    read: (reader) => Uint8Array.from(reader.bytes()),
  },
  [ScalarType.BOOL]: {
    wireType: WireType.Varint,
    zero: false,
    write: (writer, value) => writer.bool(value as boolean),
    read: (reader) => reader.bool(),
  },
  [ScalarType.UINT32]: {
    wireType: WireType.Varint,
    zero: 0,
    write: (writer, value) => writer.uint32(value as number),
    read: (reader) => reader.uint32(),
  },
  [ScalarType.UINT64]: {
    wireType: WireType.Varint,
    zero: 0,
    write: (writer, value) => writer.uint64(value as number),
    read: (reader) => Number(reader.uint64()),
  },
  [ScalarType.INT64]: {
    wireType: WireType.Varint,
    zero: 0,
    write: (writer, value) => writer.int64(value as number),
    read: (reader) => Number(reader.int64()),
  },
}

export function scalarCodec(type: ScalarType): ScalarCodec {
  const codec = scalars[type]
  if (codec === undefined) throw new Error(`the codec does not support ${ScalarType[type]} fields`)
  return codec
}

/** Keeps each distinct text in memory once. */
export const sharedTexts = (codec: ValueCodec): ValueCodec => ({
  ...codec,
  read: (reader, findings) => sharedText(codec.read(reader, findings) as string),
})

const isZero = (value: unknown, zero: unknown): boolean =>
  value === zero || (value instanceof Uint8Array && value.length === 0)

/**
 * A codec for a field with one value. A value that equals `zero` is not written, and a missing field
 * reads as `zero`; if `zero` is undefined, every value is written.
 */
export function singleField(
  { number, localName: name }: DescField,
  codec: ValueCodec,
  zero: unknown,
): FieldCodec {
  return {
    write(writer, from) {
      const value = from[name]
      if (value !== undefined && !isZero(value, zero)) {
        codec.write(writer.tag(number, codec.wireType), value)
      }
    },
    read(into, reader, findings) {
      into[name] = codec.read(reader, findings)
      return into
    },
  }
}

export const noItems: readonly never[] = []

const itemsOf = (members: MessageMembers, name: string) =>
  (members[name] ?? noItems) as readonly unknown[]

export function listField(
  field: DescField & { readonly fieldKind: 'list' },
  codec: ValueCodec,
): FieldCodec {
  const { number, localName: name, packed } = field
  const add = (into: MessageMembers, item: unknown) => {
    const items = into[name] as unknown[] | undefined
    if (items === undefined || items.length === 0) into[name] = [item]
    else items.push(item)
  }
  return {
    write(writer, from) {
      const items = itemsOf(from, name)
      if (!packed) {
        for (const item of items) codec.write(writer.tag(number, codec.wireType), item)
      } else if (items.length > 0) {
        writer.tag(number, WireType.LengthDelimited).fork()
        for (const item of items) codec.write(writer, item)
        writer.join()
      }
    },
    read(into, reader, findings, wireType) {
      if (wireType === codec.wireType) add(into, codec.read(reader, findings))
      else {
        const length = reader.uint32()
        for (const end = reader.pos + length; reader.pos < end; ) {
          add(into, codec.read(reader, findings))
        }
      }
      return into
    },
  }
}

/** Checks or changes an object after its last field was read. */
export type Check = (members: MessageMembers, findings: Findings) => void

/** Copies a list to its exact length, because lists that grow reserve more memory than they need. */
export function trimList(name: string): Check {
  return (members) => {
    const items = itemsOf(members, name)
    if (items.length > 1) members[name] = items.slice()
  }
}

/** Replaces equal lists by one shared list. */
export function shareList(name: string): Check {
  const lists = new Repeated<unknown>()
  return (members) => {
    const items = itemsOf(members, name)
    if (items.length > 0) members[name] = lists.share(JSON.stringify(items), items.slice())
  }
}
