/**
 * Desired state to bytes. A resource is encoded once per version and its bytes are shared: change
 * sets and full states are strung together from the same pieces (a repeated field of protobuf is
 * nothing but its elements one after the other).
 */
import type { DesiredDelta, Resource, ResourceKey, VersionedResource } from '../model/resources.ts'
import { FieldWriter, fieldLength, numberLength, textLength } from './frames.ts'
import { resourceCodec } from './shapes.ts'

/** Field numbers of Delta and Versioned in proto/resource.proto, which are put together by hand. */
const deltaField = { sequence: 1, upserted: 2, removed: 3 } as const
const versionedField = { version: 1, resource: 2 } as const

/** The bytes of one `Versioned` message; a piece of a Delta. */
export type EncodedResource = Uint8Array

/** The bytes of a `Resource` message, which say nothing of its version. */
export const encodeBody = (resource: Resource): Uint8Array => resourceCodec.encode(resource)

const newBytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length)

/** A `Versioned` message around the bytes of a `Resource` message, in memory of the caller's choice. */
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

/** One resource with its version as a `Versioned` message. */
export function encodeResource({ version, resource }: VersionedResource): EncodedResource {
  return assembleVersioned(version, encodeBody(resource))
}

/** A Delta from encoded resources. */
export function assembleDelta(
  sequence: number,
  upserted: Iterable<EncodedResource>,
  removed: Iterable<ResourceKey>,
): Uint8Array<ArrayBuffer> {
  return assembleIn(newBytes, sequence, [...upserted], [...removed])
}

/** The same in memory that threads can share. */
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

/** What an encoded resource takes in a Delta. */
export const upsertedLength = (piece: EncodedResource): number => fieldLength(piece.length)

/** Adds a resource to the bytes of a Delta, which is nothing but its fields one after the other. */
export function writeUpserted(writer: FieldWriter, piece: EncodedResource): void {
  writer.bytes(deltaField.upserted, piece)
}

/** A change set as a `sluice.resource.v1.Delta` message. */
export function encodeDelta(delta: DesiredDelta): Uint8Array<ArrayBuffer> {
  return assembleDelta(delta.sequence, delta.upserted.map(encodeResource), delta.removed)
}
