/** Taking a change set apart without reading what its resources say. */
import { BinaryReader } from '@bufbuild/protobuf/wire'
import type { ResourceKey } from '../model/resources.ts'
import type { EncodedResource } from './encode.ts'

/** One encoded resource, and which version of what it is. */
export interface VersionedPiece {
  readonly key: ResourceKey
  readonly version: string
  readonly piece: EncodedResource
}

/** Calls `take` with the bytes of each length-delimited field; skips the others. */
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

/** Field numbers of proto/resource.proto. */
const upserted = 2
const version = 1
const resource = 2
const key = 1

/** The resources of a `Delta` message; the pieces are parts of its bytes. @throws as it is none */
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
