/** Fields of protobuf messages as members of plain objects. */
import { type DescField, ScalarType } from '@bufbuild/protobuf'
import { type BinaryReader, type BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { Repeated, sharedText } from '../base/repeated.ts'

export type Members = Record<string, unknown>

/** What is wrong with an object that was read. Reading goes on: parts may be of use. */
export class Findings {
  /** A field that the descriptors do not have was passed over. */
  hasUnknownFields = false
  /** Why the object cannot be used; the first reason. */
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

/** Writes and reads values of one type: of a scalar, or of a message. */
export interface ValueCodec {
  readonly wireType: WireType
  write(writer: BinaryWriter, value: unknown): void
  read(reader: BinaryReader, findings: Findings): unknown
}

/** Writes and reads one field of a message. */
export interface FieldCodec {
  write(writer: BinaryWriter, from: Members): void
  /** Returns the object that the fields that follow belong to. */
  read(into: Members, reader: BinaryReader, findings: Findings, wireType: WireType): Members
}

interface ScalarCodec extends ValueCodec {
  /** What a field is that was not sent. */
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
    // Copied: the bytes of a change set need not live as long as what was read from them.
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

/** Texts that repeat are kept in memory once. */
export const sharedTexts = (codec: ValueCodec): ValueCodec => ({
  ...codec,
  read: (reader, findings) => sharedText(codec.read(reader, findings) as string),
})

const isZero = (value: unknown, zero: unknown): boolean =>
  value === zero || (value instanceof Uint8Array && value.length === 0)

/**
 * A field with one value. `zero`: a value that is not sent, and so comes back if the field is not
 * there; undefined if every value is sent.
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

const itemsOf = (members: Members, name: string) => (members[name] ?? noItems) as readonly unknown[]

export function listField(
  field: DescField & { readonly fieldKind: 'list' },
  codec: ValueCodec,
): FieldCodec {
  const { number, localName: name, packed } = field
  const add = (into: Members, item: unknown) => {
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

/** Looks at an object after its last field. */
export type Check = (members: Members, findings: Findings) => void

/** Makes a list as long as it is: one that grew has room to spare. */
export function trimList(name: string): Check {
  return (members) => {
    const items = itemsOf(members, name)
    if (items.length > 1) members[name] = items.slice()
  }
}

/** Puts one list in place of many equal ones. */
export function shareList(name: string): Check {
  const lists = new Repeated<unknown>()
  return (members) => {
    const items = itemsOf(members, name)
    if (items.length > 0) members[name] = lists.share(JSON.stringify(items), items.slice())
  }
}
