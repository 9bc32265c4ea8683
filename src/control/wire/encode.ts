/**
 * Encodes desired state. A resource is encoded once per version, and change sets and full states share
 * its bytes: a repeated protobuf field is its encoded elements in sequence, so they are concatenated.
 */
import type {
  DesiredDelta,
  Resource,
  ResourceKey,
  VersionedResource,
} from '../../ground/model/resources.ts'
import { FieldWriter, fieldLength, numberLength, textLength } from './frames.ts'
import { resourceCodec } from './shapes.ts'

/** Field numbers of Delta and Versioned in proto/resource.proto, for messages that are encoded by hand. */
const deltaField = { sequence: 1, upserted: 2, removed: 3 } as const
const versionedField = { version: 1, resource: 2 } as const

/** The bytes of one `Versioned` message, as an element of a Delta. */
export type EncodedResource = Uint8Array

/** Encodes a `Resource` message, which does not contain the version. */
export const encodeBody = (resource: Resource): Uint8Array => resourceCodec.encode(resource)

const newBytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length)

/** Encodes a `Versioned` message around an encoded `Resource`. `allocate` provides the memory. */
export function assembleVersioned(
  version: string,
  body: Uint8Array,
  allocate: (length: number) => Uint8Array = newBytes,
): EncodedResource {
  const bytes = allocate(textLength(version) + fieldLength(body.length))
  const writer = new FieldWriter(bytes)
  writer.text(versionedField.version, version)
  writer.bytes(versionedField.resource, body)
  return bytes
}

/** Encodes a resource and its version as a `Versioned` message. */
export function encodeResource({ version, resource }: VersionedResource): EncodedResource {
  return assembleVersioned(version, encodeBody(resource))
}

/** Builds a Delta from encoded resources. */
export function assembleDelta(
  sequence: number,
  upserted: Iterable<EncodedResource>,
  removed: Iterable<ResourceKey>,
): Uint8Array<ArrayBuffer> {
  return assembleIn(newBytes, sequence, [...upserted], [...removed])
}

/** Like `assembleDelta`, in memory that threads can share. */
export function assembleSharedDelta(
  sequence: number,
  upserted: Iterable<EncodedResource>,
  removed: Iterable<ResourceKey>,
): Uint8Array<SharedArrayBuffer> {
  const allocate = (length: number) => new Uint8Array(new SharedArrayBuffer(length))
  return assembleIn(allocate, sequence, [...upserted], [...removed])
}

function assembleIn<Bytes extends Uint8Array>(
  allocate: (length: number) => Bytes,
  sequence: number,
  upserted: readonly EncodedResource[],
  removed: readonly ResourceKey[],
): Bytes {
  let length = sequence === 0 ? 0 : numberLength(sequence)
  for (const piece of upserted) length += upsertedLength(piece)
  for (const key of removed) length += textLength(key)
  const bytes = allocate(length)
  const writer = new FieldWriter(bytes)
  if (sequence !== 0) writer.number(deltaField.sequence, sequence)
  for (const piece of upserted) writeUpserted(writer, piece)
  for (const key of removed) writer.text(deltaField.removed, key)
  return bytes
}

/** Number of bytes that an encoded resource occupies in a Delta. */
export const upsertedLength = (piece: EncodedResource): number => fieldLength(piece.length)

/** Appends a resource to a Delta, which is a sequence of fields. */
export function writeUpserted(writer: FieldWriter, piece: EncodedResource): void {
  writer.bytes(deltaField.upserted, piece)
}

/** Encodes a change set as a `sluice.resource.v1.Delta` message. */
export function encodeDelta(delta: DesiredDelta): Uint8Array<ArrayBuffer> {
  return assembleDelta(delta.sequence, delta.upserted.map(encodeResource), delta.removed)
}
