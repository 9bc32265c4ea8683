/** Splits a change set into its resources without decoding them. */
import { BinaryReader } from '@bufbuild/protobuf/wire'
import type { ResourceKey } from '../../ground/model/resources.ts'
import type { EncodedResource } from './encode.ts'

/** An encoded resource with its key and version. */
export interface VersionedPiece {
  readonly key: ResourceKey
  readonly version: string
  readonly piece: EncodedResource
}

/** Calls `take` with the number and bytes of each length-delimited field; skips all other fields. */
function fields(bytes: Uint8Array, take: (field: number, value: Uint8Array) => void): void {
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (type === lengthDelimited) take(field, reader.bytes())
    else reader.skip(type, field)
  }
}

const lengthDelimited = 2
const text = new TextDecoder()

/** Field numbers in proto/resource.proto. */
const upserted = 2
const version = 1
const resource = 2
const key = 1

/**
 * Splits a `Delta` message into its resources. The pieces are views of its bytes, not copies.
 * @throws if the bytes are not a valid message
 */
export function splitDelta(delta: Uint8Array): VersionedPiece[] {
  const pieces: VersionedPiece[] = []
  fields(delta, (field, bytes) => {
    if (field !== upserted) return
    const piece = { key: '', version: '', piece: bytes }
    fields(bytes, (part, value) => {
      if (part === version) piece.version = text.decode(value)
      if (part !== resource) return
      fields(value, (inner, name) => {
        if (inner === key) piece.key = text.decode(name)
      })
    })
    pieces.push(piece)
  })
  return pieces
}
