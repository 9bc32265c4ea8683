/**
 * Converts objects of the model to protobuf messages and back, guided by the message descriptors.
 * Each message type is compiled once, into a codec that writes and reads it.
 *
 *   protobuf message                       object of the model
 *   field                                  member of the same name
 *   `optional` field that is not set       no member
 *   message field without `optional`       required member
 *   repeated field                         list
 *   int64, uint64                          number
 *   oneof `kind` of messages               the object itself: `type` and the members of the message
 *   oneof of another name                  member of that name: `type` and the members of the message
 *   oneof with a scalar                    the one member that is set
 *
 * The `MessageShape` of a message type lists its exceptions from these rules.
 */
import type { DescField, DescMessage, DescOneof } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import {
  type Check,
  type FieldCodec,
  Findings,
  listField,
  type MessageMembers,
  noItems,
  scalarCodec,
  sharedTexts,
  shareList,
  singleField,
  trimList,
  type ValueCodec,
} from './fields.ts'
import { Repeated } from './repeated.ts'

/** How objects of the model differ from a message type. Keys are field names in camel case. */
interface MessageShape {
  /** Message fields whose members are put into the containing object. */
  readonly inlined?: readonly string[]
  /** Allowed values of text fields. */
  readonly words?: Readonly<Record<string, readonly string[]>>
  /** Repeated fields whose member is omitted if they are empty. */
  readonly absentIfEmpty?: readonly string[]
  /** Fields whose texts or lists repeat in many objects; each distinct one is kept in memory once. */
  readonly shared?: readonly string[]
  /** Equal messages are decoded to the same object. */
  readonly isShared?: true
  /** Problems in the message do not affect its containing message; `fromWire` gets them instead. */
  readonly isIsolated?: true
  /** Converts an object of the model to one that has the members of the message. */
  toWire?(value: never): object
  /** Converts the members of the message to an object of the model. */
  fromWire?(members: never, findings: Findings): unknown
}

export type Shapes = Readonly<Record<string, MessageShape>>

type Compile = (desc: DescMessage) => MessageCodec
type MessageField = DescField & { readonly fieldKind: 'message' }

/** Whether the members of the oneof are identified by their names instead of a `type`. */
const isUntagged = ({ fields }: DescOneof): boolean =>
  fields.some(({ fieldKind }) => fieldKind === 'scalar')

/** A writer that is used again: its buffer has grown, and is not grown for each of thousands of resources. */
let idleWriter: BinaryWriter | undefined
/** A writer that has written more is not kept, since its buffer would be. */
const keptBytes = 65_536

class MessageCodec implements ValueCodec {
  readonly wireType = WireType.LengthDelimited
  readonly #name: string
  readonly #shape: MessageShape
  readonly #compile: Compile
  readonly #byNumber: FieldCodec[] = []
  /** In the order of field numbers, as canonical encoding requires. */
  readonly #fields: readonly FieldCodec[]
  /** Members that a decoded object has before any field is read. */
  readonly #defaults: MessageMembers = {}
  readonly #checks: Check[] = []
  readonly #sharedMessages: Repeated<unknown> | undefined

  constructor(desc: DescMessage, shape: MessageShape, compile: Compile) {
    this.#name = nameOf(desc)
    this.#shape = shape
    this.#compile = compile
    this.#sharedMessages = shape.isShared && new Repeated<unknown>()
    const sorted = [...desc.fields].sort((a, b) => a.number - b.number)
    this.#fields = sorted.map((field) => {
      const codec = this.#fieldCodec(field)
      this.#byNumber[field.number] = codec
      return codec
    })
    for (const oneof of desc.oneofs) this.#requireMember(oneof)
    for (const [name, words] of Object.entries(shape.words ?? {})) this.#requireWord(name, words)
  }

  encode(value: object): Uint8Array<ArrayBuffer> {
    const writer = idleWriter ?? new BinaryWriter()
    // Neither an encoding within this one nor one after an error uses the same writer.
    idleWriter = undefined
    this.#writeFields(writer, value)
    const bytes = writer.finish()
    if (bytes.length <= keptBytes) idleWriter = writer
    return bytes
  }

  /** @throws if the bytes are not a valid message. */
  decode(bytes: Uint8Array, findings: Findings): unknown {
    const reader = new BinaryReader(bytes)
    return this.#finish(
      this.#readFields({ ...this.#defaults }, reader, reader.len, findings),
      findings,
    )
  }

  /** Writes the message with its length in front; `read` expects the same. */
  write(writer: BinaryWriter, value: unknown): void {
    writer.fork()
    this.#writeFields(writer, value)
    writer.join()
  }

  read(reader: BinaryReader, findings: Findings): unknown {
    if (this.#sharedMessages !== undefined)
      return this.#readShared(reader.bytes(), this.#sharedMessages, findings)
    if (this.#shape.isIsolated) return this.decode(reader.bytes(), new Findings())
    return this.#readInto({ ...this.#defaults }, reader, findings)
  }

  #writeFields(writer: BinaryWriter, value: unknown): void {
    const { toWire } = this.#shape
    const members = (toWire === undefined ? value : toWire(value as never)) as MessageMembers
    for (const field of this.#fields) field.write(writer, members)
  }

  #readShared(bytes: Uint8Array, knownMessages: Repeated<unknown>, findings: Findings): unknown {
    const { buffer, byteOffset, length } = bytes
    const identity = Buffer.from(buffer, byteOffset, length).toString('latin1')
    const before = knownMessages.find(identity)
    if (before !== undefined) return before
    const own = new Findings()
    const value = this.decode(bytes, own)
    findings.merge(own)
    return own.isEmpty ? knownMessages.share(identity, value) : value
  }

  #readInto(into: MessageMembers, reader: BinaryReader, findings: Findings): unknown {
    const length = reader.uint32()
    return this.#finish(this.#readFields(into, reader, reader.pos + length, findings), findings)
  }

  #readFields(
    into: MessageMembers,
    reader: BinaryReader,
    end: number,
    findings: Findings,
  ): MessageMembers {
    let members = into
    while (reader.pos < end) {
      const [number, wireType] = reader.tag()
      const field = this.#byNumber[number]
      if (field !== undefined) members = field.read(members, reader, findings, wireType)
      else {
        findings.hasUnknownFields = true
        reader.skip(wireType, number)
      }
    }
    return members
  }

  #finish(members: MessageMembers, findings: Findings): unknown {
    for (const check of this.#checks) check(members, findings)
    const { fromWire } = this.#shape
    return fromWire === undefined ? members : fromWire(members as never, findings)
  }

  #fieldCodec(field: DescField): FieldCodec {
    const { localName: name, oneof } = field
    switch (field.fieldKind) {
      case 'scalar': {
        const codec = scalarCodec(field.scalar)
        const value = this.#shape.shared?.includes(name) ? sharedTexts(codec) : codec
        if (isOptional(field)) return singleField(field, value, undefined)
        this.#defaults[name] = codec.zero
        return singleField(field, value, codec.zero)
      }
      case 'message':
        if (this.#shape.inlined?.includes(name)) return this.#inlinedField(field)
        if (oneof !== undefined && !isUntagged(oneof)) return this.#memberField(field, oneof)
        if (!isOptional(field)) this.#require(name, `${this.#name}.${name} is missing`)
        return singleField(field, this.#compile(field.message), undefined)
      case 'list':
        return this.#listField(field)
      default:
        throw new Error(`the codec does not support the field ${field}`)
    }
  }

  #listField(field: DescField & { readonly fieldKind: 'list' }): FieldCodec {
    const { localName: name } = field
    const isShared = this.#shape.shared?.includes(name) === true
    if (!this.#shape.absentIfEmpty?.includes(name)) this.#defaults[name] = noItems
    if (field.listKind === 'scalar') {
      const codec = scalarCodec(field.scalar)
      this.#checks.push(trimList(name))
      return listField(field, isShared ? sharedTexts(codec) : codec)
    }
    if (field.listKind !== 'message') throw new Error(`the codec does not support ${field}`)
    this.#checks.push(isShared ? shareList(name) : trimList(name))
    return listField(field, this.#compile(field.message))
  }

  #inlinedField(field: MessageField): FieldCodec {
    const { number } = field
    const codec = this.#compile(field.message)
    const [first = ''] = Object.keys(codec.#defaults)
    this.#require(first, `${this.#name}.${field.localName} is missing`)
    return {
      write: (writer, from) => codec.write(writer.tag(number, codec.wireType), from),
      read(into, reader, findings) {
        codec.#readInto(Object.assign(into, codec.#defaults), reader, findings)
        return into
      },
    }
  }

  /** A field of a oneof; it is written if the value has its `type`. */
  #memberField(field: MessageField, oneof: DescOneof): FieldCodec {
    const { number, localName: type } = field
    const codec = this.#compile(field.message)
    const write = (writer: BinaryWriter, value: MessageMembers) => {
      if (value.type === type) codec.write(writer.tag(number, codec.wireType), value)
    }
    const name = oneof.localName
    if (name !== 'kind') {
      const defaults = { type, ...codec.#defaults }
      return {
        write: (writer, from) => write(writer, from[name] as MessageMembers),
        read(into, reader, findings) {
          into[name] = codec.#readInto({ ...defaults }, reader, findings)
          return into
        },
      }
    }
    let defaults: MessageMembers | undefined
    return {
      write,
      read: (into, reader, findings) => {
        defaults ??= { type, ...this.#defaults, ...codec.#defaults }
        const members = Object.assign({ ...defaults }, into)
        return codec.#readInto(members, reader, findings) as MessageMembers
      },
    }
  }

  #require(name: string, problem: string): void {
    this.#checks.push((members, findings) => {
      if (members[name] === undefined) findings.report(problem)
    })
  }

  #requireMember(oneof: DescOneof): void {
    const { localName } = oneof
    const own = [localName === 'kind' ? 'type' : localName]
    const names = isUntagged(oneof) ? oneof.fields.map((field) => field.localName) : own
    const problem = `${this.#name} is of a type that this version does not know`
    this.#checks.push((members, findings) => {
      if (names.every((name) => members[name] === undefined)) findings.report(problem)
    })
  }

  #requireWord(name: string, words: readonly string[]): void {
    const knownWords: ReadonlySet<unknown> = new Set(words)
    const label = `${this.#name}.${name}`
    this.#checks.push((members, findings) => {
      const word = members[name]
      if (word === undefined || knownWords.has(word)) return
      findings.report(`${label} ${JSON.stringify(word)} is not known to this version`)
    })
  }
}

const isOptional = ({ oneof, proto }: DescField): boolean =>
  oneof !== undefined || proto.proto3Optional

/** Name of a message type without its package. */
const nameOf = ({ typeName, file }: DescMessage): string =>
  typeName.slice(file.proto.package.length + 1)

/** Compiles message types and all types that they contain. `shapes` are keyed by type name. */
export function codecsOf(shapes: Shapes): Compile {
  const compiled = new Map<DescMessage, MessageCodec>()
  const compile = (desc: DescMessage): MessageCodec => {
    const codec = compiled.get(desc) ?? new MessageCodec(desc, shapes[nameOf(desc)] ?? {}, compile)
    compiled.set(desc, codec)
    return codec
  }
  return compile
}
